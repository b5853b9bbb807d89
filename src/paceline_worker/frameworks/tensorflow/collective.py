"""One rank of a collective by itself with TensorFlow: over gRPC, a ring as its strategies use it, or a tree."""

import tensorflow as tf

from paceline_worker import collectives
from paceline_worker.frameworks.tensorflow import group as tensorflow_group
from paceline_worker.frameworks.tensorflow.training import configure

ELEMENT_BYTES = 4
GROUP, INSTANCES = 70000, 80000
"""Keys of a group and of its operations that no strategy has given out: those count up from 1."""


def train(job, events):
    """Meet the other ranks, trace, take all rounds."""
    configure(job)
    group = tensorflow_group.join(job)
    exercise = EXERCISES[job.collective["operation"]]
    exercises = [exercise(job, group, size) for size in job.collective["sizes"]]
    collectives.ready(job, events, tf.__version__, "gRPC")
    collectives.take_rounds(job, events, exercises, group.synchronize)
    group.leave()


class Exchange(collectives.Exercise):
    """A message of this rank's number plus one, in every element; nothing writes over it."""

    def __init__(self, job, group, size):
        self.size = size
        self.ranks = job.world_size
        self._group = group
        message = tf.fill([self.elements()], tf.constant(job.rank + 1.0))
        # Traced in the first round, which is no measured one.
        self._program = tf.function(lambda: group.run(self.exchange, message), autograph=False)
        self._out = None

    def elements(self):
        return self.size // ELEMENT_BYTES

    def exchange(self, message):
        """Called by a replica."""
        raise NotImplementedError

    def reset(self):
        # What came out before is given back outside of the timed part.
        self._out = None

    def run(self):
        self._out = self._program()

    def array(self):
        """What came out on this rank."""
        (local,) = self._group.local(self._out)
        return local.numpy()


class AllReduce(Exchange):
    def exchange(self, message):
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, message)

    def result(self):
        return span(self.array()), (collectives.expected_sum(self.ranks),) * 2


class AllGather(Exchange):
    """Every rank gives its share of the message."""

    def elements(self):
        return self.size // ELEMENT_BYTES // self.ranks

    def exchange(self, message):
        return tf.distribute.get_replica_context().all_gather(message, axis=0)

    def result(self):
        shares = self.array().reshape(self.ranks, -1)
        return [span(share) for share in shares], [(rank + 1.0,) * 2 for rank in range(self.ranks)]


class Broadcast(Exchange):
    """Rank 0's message to all. A strategy offers no such exchange, and so its operator is called by its own name."""

    def __init__(self, job, group, size):
        self._rank = job.rank
        self._instance = INSTANCES + job.collective["sizes"].index(size)
        super(Broadcast, self).__init__(job, group, size)

    def exchange(self, message):
        among = {"group_size": self.ranks, "group_key": GROUP, "instance_key": self._instance}
        if self._rank == 0:
            return tf.raw_ops.CollectiveBcastSendV2(input=message, **among)
        return tf.raw_ops.CollectiveBcastRecvV2(T=tf.float32, shape=[self.elements()], **among)

    def result(self):
        return span(self.array()), (1.0, 1.0)


def span(array):
    """(smallest, largest) element: both are right only if all are."""
    return float(array.min()), float(array.max())


EXERCISES = {"all_reduce": AllReduce, "all_gather": AllGather, "broadcast": Broadcast}
