"""How TensorFlow's workers share variables and gradients: alone, as devices of one process, or as processes.

A group makes variables, runs what one worker does on all workers of this process, and averages gradients in it. With
peers it is a `tf.distribute` strategy: parameters are the same on all workers, statistics of batch norms every worker's
own, and nothing is exchanged but what a worker asks for itself.
"""

import contextlib
import json
import os
import signal
import socket

import tensorflow as tf


class Alone(object):
    """One worker, and nothing to share."""

    name = "none"

    def scope(self):
        """Where variables that others make belong to all workers."""
        return contextlib.nullcontext()

    def variable(self, array, trainable=True):
        return tf.Variable(array, trainable=trainable, dtype=tf.float32)

    def batch(self, arrays):
        return tf.constant(arrays[0])

    def run(self, program, *arguments):
        """What each worker does, on all workers of this process."""
        return program(*arguments)

    def average(self, gradients):
        """Called by a worker: the mean of all workers' gradients."""
        return gradients

    def local(self, value):
        """One value for each worker of this process."""
        return (value,)

    def synchronize(self):
        pass

    def leave(self):
        pass


class Group(object):
    """A worker, or some, among peers, by a strategy of `tf.distribute`."""

    def __init__(self, name, strategy, options):
        self.name = name
        self._strategy = strategy
        self._options = options
        # Every meeting sums ones over all workers; compiled once, and met for the first time by the first block.
        self._meet = tf.function(lambda: strategy.run(self._sum), autograph=False)

    def scope(self):
        return self._strategy.scope()

    def variable(self, array, trainable=True):
        own = {} if trainable else {"synchronization": tf.VariableSynchronization.ON_READ}
        with self._strategy.scope():
            return tf.Variable(array, trainable=trainable, dtype=tf.float32, **own)

    def batch(self, arrays):
        def own(context):
            return tf.constant(arrays[context.replica_id_in_sync_group % len(arrays)])

        return self._strategy.experimental_distribute_values_from_function(own)

    def run(self, program, *arguments):
        return self._strategy.run(program, args=arguments)

    def average(self, gradients):
        # Packed into one vector by the strategy itself, or into several of `bytes_per_pack`.
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.MEAN, gradients, options=self._options)

    def local(self, value):
        return self._strategy.experimental_local_results(value)

    def synchronize(self):
        """Return when all workers are here, however long one of them took to trace its step."""
        self._meet()

    def leave(self):
        """Part when all are here: rank 0 holds the service that the others still talk to."""
        # Whoever is gone had been here: it left a moment before its last word reached this rank.
        with contextlib.suppress(tf.errors.OpError):
            self._meet()

    def _sum(self):
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([1]))


def mirrored(job):
    """MirroredStrategy over logical CPUs of this process."""
    names = ["CPU:{}".format(device) for device in range(job.devices)]
    return Group("MirroredStrategy", tf.distribute.MirroredStrategy(names), _options(job))


def multi_worker(job):
    """MultiWorkerMirroredStrategy: a ring of processes over gRPC, as TF_CONFIG says.

    Raises: OSError: "Address already in use": another process has the port.
    """
    claim_own_port()
    options = _options(job)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    # TensorFlow has taken SIGTERM for itself, as notice of a preemption: a rank ends when the host asks it to.
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    return Group("MultiWorkerMirroredStrategy", strategy, options)


def _options(job):
    return tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=int(job.knobs["bytes_per_pack"] or 0),
        implementation=tf.distribute.experimental.CommunicationImplementation.RING,
    )


def claim_own_port():
    """gRPC's own complaint about a taken port comes late and in other words."""
    config = json.loads(os.environ["TF_CONFIG"])
    address, port = config["cluster"][config["task"]["type"]][config["task"]["index"]].rsplit(":", 1)
    family = socket.getaddrinfo(address, int(port), type=socket.SOCK_STREAM)[0][0]
    # TensorFlow listens on all addresses.
    socket.create_server(("", int(port)), family=family).close()


JOIN = {"mirrored": mirrored, "multi_worker_mirrored": multi_worker}


def join(job):
    return Alone() if job.workers == 1 else JOIN[job.strategy](job)
