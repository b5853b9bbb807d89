"""What a JAX rank reads: samples resident in memory, or a pipeline that prepares each batch when it is needed.

Both deal out the samples in the order of `paceline_worker.batches`. JAX has no input pipeline of its own: its users
prepare batches with NumPy or bring the loader of another framework, which would then be measured. So it is NumPy here.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from paceline_worker.batches import batch_indices, cycle_steps, first_sample
from paceline_worker.frameworks.prepared import as_numbers, prepared
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
        inputs = as_numbers(np.asarray(samples.inputs)[places], samples.normalisation)
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


class Pipeline(object):
    """Reads, crops, flips and normalises: in the training loop itself, or ahead of it in threads.

    Processes would have to be forked, which XLA's threads do not survive. NumPy lets other threads run while it copies
    and computes.
    """

    def __init__(self, job, layout, put):
        """Args: as of `Resident`."""
        self._job = job
        self._samples = Samples(job.input["index"])
        self._channels_last = self._samples.kind == "image" and layout == "nhwc"
        self._put = put
        self._loaders = job.input["loader_workers"]
        self._pool = ThreadPoolExecutor(self._loaders) if self._loaders else None
        self._ahead = {}
        """Step → its batches, which are made or being made."""

    def __call__(self, step):
        inputs, targets = zip(*(self._made(step) if self._pool is None else self._made_ahead(step)))
        return self._put(list(inputs)), self._put(list(targets))

    def _made_ahead(self, step):
        # One batch for each loader, and one more that is ready when a loader has finished.
        for coming in range(step, step + self._loaders + 1):
            if coming not in self._ahead:
                self._ahead[coming] = self._pool.submit(self._made, coming)
        return self._ahead.pop(step).result()

    def _made(self, step):
        """(inputs, targets) of each worker of this rank."""
        return [self._batch(step, self._job.rank * self._job.devices + place) for place in range(self._job.devices)]

    def _batch(self, step, worker):
        job, samples = self._job, self._samples
        places = batch_indices(step, worker, job.workers, job.batch, samples.count)
        inputs, targets = prepared(samples, places, [job.seed, worker, step])
        return _aligned(inputs.transpose(0, 2, 3, 1) if self._channels_last else inputs), _aligned(targets)


def open_source(job, layout, put):
    """The source that the job asks for."""
    return {"resident": Resident, "pipeline": Pipeline}[job.input["kind"]](job, layout, put)


def _aligned(array):
    """A contiguous copy that starts where XLA can take it without copying."""
    room = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
