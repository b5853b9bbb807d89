"""One rank of push and pull by itself with MXNet: a message to ps-lite's servers, and the sum of all back."""

import mxnet as mx

from paceline_worker import collectives
from paceline_worker.frameworks.mxnet import group as mxnet_group

ELEMENT_BYTES = 4


def train(job, events):
    """Meet the other ranks and the servers, take all rounds."""
    group = mxnet_group.join(job)
    exercises = [PushPull(job, group.kvstore, key, size) for key, size in enumerate(job.collective["sizes"])]
    collectives.ready(job, events, mx.__version__, "ps-lite")
    collectives.take_rounds(job, events, exercises, group.synchronize)


class PushPull(collectives.Exercise):
    """A message of this rank's number plus one, in every element, under a key of its own."""

    def __init__(self, job, store, key, size):
        self.size = size
        self._rank, self._ranks = job.rank, job.world_size
        self._store, self._key = store, key
        self._message = mx.nd.full((size // ELEMENT_BYTES,), job.rank + 1)
        self._sum = mx.nd.zeros((size // ELEMENT_BYTES,))
        store.init(key, self._sum)
        mx.nd.waitall()

    def reset(self):
        # What comes back from a server is first written over what was pushed.
        self._message[:] = self._rank + 1
        mx.nd.waitall()

    def run(self):
        self._store.push(self._key, self._message)
        self._store.pull(self._key, out=self._sum)
        self._sum.wait_to_read()

    def result(self):
        smallest_and_largest = float(self._sum.min().asscalar()), float(self._sum.max().asscalar())
        return smallest_and_largest, (collectives.expected_sum(self._ranks),) * 2
