"""How workers of MXNet share gradients: not at all, between the devices of one process, or through ps-lite.

A group gives Gluon's Trainer its key-value store. Peers of ps-lite find each other by the DMLC_* variables that the
host set; in which order they come, and so which of them its `rank` calls 0, is of no importance: all start with the
same weights.
"""

import mxnet as mx
from mxnet import gluon

from paceline_worker.frameworks.mxnet.staleness import COUNTER, CountingSGD

SHOWN = 50000
"""First key of gradients that are exchanged to be shown; the Trainer's keys are the places of its parameters. MXNet
multiplies keys by 9973 in an int to choose a server, so there is no room above 215000."""


class Alone(object):
    """One worker, and nothing to share."""

    name = "none"
    kvstore = None
    update_on_kvstore = None
    optimizer = mx.optimizer.SGD
    trainer = gluon.Trainer
    averages = True
    """Whether there is such a thing as the gradient of a step, averaged over all workers."""

    def exchanged(self, gradients):
        """Gradients summed over all workers.

        Args:
            gradients: for each parameter, the list of its gradients on the devices of this process.
        """
        return [gradient for (gradient,) in gradients]

    def meet(self, trainer):
        """Before the first step: whatever the store must know by then."""

    def began(self):
        """The backward pass is under way, and the store will be next."""

    def synchronize(self):
        """Return when all ranks are here."""

    def facts(self):
        """What is known only after the steps."""
        return {}


class Devices(Alone):
    """Devices of this one process."""

    def __init__(self, job, kind):
        self.kvstore = kind
        self.name = "kvstore {}".format(kind)
        self.update_on_kvstore = job.knobs["update_on_kvstore"]

    def exchanged(self, gradients):
        return _exchanged(mx.kv.create(self.kvstore), gradients)


class Peers(Alone):
    """This rank among its peers; the servers average, in step with all of them."""

    def __init__(self, job, kind):
        self.kvstore = mx.kv.create(kind)
        self.name = "kvstore {}".format(kind)
        self.update_on_kvstore = job.knobs["update_on_kvstore"]
        if job.knobs["gradient_compression"] != "none":
            self.trainer = PushThenPull
            self.kvstore.set_gradient_compression(
                {"type": job.knobs["gradient_compression"], "threshold": job.knobs["compression_threshold"]}
            )

    def exchanged(self, gradients):
        """Only before the Trainer's first step: from then on the servers take whatever comes for a gradient."""
        return _exchanged(self.kvstore, gradients)

    def meet(self, trainer):
        """Where workers update, give the store the weights now.

        By itself the Trainer does so in its first step, and then a rank's first reading of a weight and its first
        gradient are under way together: when the gradient is there first, that is what is read as the weight. Servers
        that update give weights either way, and must not have their optimizer before gradients were shown.
        """
        if self.update_on_kvstore is False:
            trainer._init_kvstore()  # noqa: SLF001  there is no public door
            trainer._init_params()  # noqa: SLF001
            mx.nd.waitall()
            self.synchronize()

    def synchronize(self):
        self.kvstore._barrier()  # noqa: SLF001  there is no public door


class PushThenPull(gluon.Trainer):
    """As the Trainer was before MXNet 1.7: a store that compresses refuses to push and pull in one."""

    def _allreduce_grads(self):
        for place, parameter in enumerate(self._params):
            gradients = parameter.list_grad()
            self._kvstore.push(place, gradients, priority=-place)
            wanted = parameter.list_data() if self._update_on_kvstore else gradients
            self._kvstore.pull(place, out=wanted, priority=-place)


class AsynchronousPeers(Peers):
    """As Peers, but each one's gradients are applied when they come."""

    optimizer = CountingSGD
    averages = False

    def __init__(self, job, kind):
        super(AsynchronousPeers, self).__init__(job, kind)
        self._begun = False
        self._counts = []
        # Compressed, a 1 would not arrive as a 1.
        self._exact = job.knobs["gradient_compression"] == "none"
        self.kvstore.init(COUNTER, mx.nd.zeros(1))

    def began(self):
        begun, self._begun = self._begun, True
        # Before the first step the servers have no optimizer yet, and would not add.
        if not begun or not self._exact:
            return
        count = mx.nd.zeros(1)
        self.kvstore.push(COUNTER, mx.nd.ones(1))
        self.kvstore.pull(COUNTER, out=count)
        self._counts.append(count)

    def facts(self):
        counts = [int(count.asscalar()) for count in self._counts]
        between = [after - before - 1 for before, after in zip(counts, counts[1:])]
        if not between:
            return {"staleness": None}
        return {"staleness": {"mean": sum(between) / len(between), "max": max(between)}}


def _exchanged(store, gradients):
    sums = []
    for place, copies in enumerate(gradients):
        total = mx.nd.zeros(copies[0].shape)
        store.init(SHOWN + place, total)
        # Copies: what comes back from a server is first written over what was pushed.
        store.push(SHOWN + place, [weight.copy() for weight in copies])
        store.pull(SHOWN + place, out=total)
        sums.append(total)
    return sums


STRATEGIES = {
    "kvstore_local": (Devices, "local"),
    "kvstore_device": (Devices, "device"),
    "dist_sync": (Peers, "dist_sync"),
    "dist_async": (AsynchronousPeers, "dist_async"),
}
"""Strategy → who shares, and MXNet's name of the store."""


def join(job):
    """The group of this rank; comes back when all of it are there."""
    if job.workers == 1:
        return Alone()
    group, kind = STRATEGIES[job.strategy]
    return group(job, kind)
