"""What a JAX rank reads: samples resident in memory, in the order of `paceline_worker.batches`."""

import numpy as np

from paceline_worker.batches import cycle_steps, first_sample
from paceline_worker.frameworks.samples import Samples

ALIGNMENT = 64
"""XLA takes memory as it is where it starts at a multiple of this, and copies it elsewhere."""


class Resident(object):
    """All samples normalised once; a batch is a view of them wherever its first sample is aligned."""

    def __init__(self, job, layout, put):
        """Args: put: the samples of each worker of this rank → an array that its programs take."""
        samples = Samples(job.input["index"])
        # A batch that wraps at the end of the file must be contiguous too: the first samples once more at the end.
        places = np.arange(samples.count + job.batch - 1) % samples.count
        inputs = _as_numbers(np.asarray(samples.inputs)[places], samples.normalisation)
        if samples.kind == "image" and layout == "nhwc":
            inputs = inputs.transpose(0, 2, 3, 1)
        inputs, targets = _aligned(inputs), _aligned(np.asarray(samples.targets)[places].astype(np.int32))
        self._batches = []
        cycle = cycle_steps(job.workers, job.batch, samples.count)
        workers = range(job.rank * job.devices, (job.rank + 1) * job.devices)
        for step in range(min(cycle, job.warmup_steps + job.steps)):
            firsts = [first_sample(step, worker, job.workers, job.batch, samples.count) for worker in workers]
            own = [slice(first, first + job.batch) for first in firsts]
            self._batches.append((put([inputs[part] for part in own]), put([targets[part] for part in own])))

    def __call__(self, step):
        return self._batches[step % len(self._batches)]


def _as_numbers(stored, normalisation):
    """Tokens as they are; anything else as (x - subtract) / divide."""
    if normalisation is None:
        return stored.astype(np.int32)
    subtract, divide = (np.float32(normalisation[name]) for name in ("subtract", "divide"))
    return (stored.astype(np.float32) - subtract) / divide


def _aligned(array):
    """A contiguous copy that starts where XLA can take it without copying."""
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
