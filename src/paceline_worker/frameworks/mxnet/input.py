"""What an MXNet rank reads: samples resident in memory, or a real pipeline of `gluon.data`.

Both deal out the samples in the order of `paceline_worker.batches`.
"""

import mxnet as mx
import numpy as np
from mxnet.gluon.data import DataLoader, Dataset, Sampler

from paceline_worker.batches import batch_indices, cycle_steps, first_sample
from paceline_worker.frameworks.prepared import as_numbers, prepared
from paceline_worker.frameworks.samples import Samples


class Resident(object):
    """All samples normalised once, on each context; a batch is a view of them, so that a step copies nothing."""

    def __init__(self, job, contexts):
        samples = Samples(job.input["index"])
        # A batch that wraps at the end of the file must be contiguous too: the first samples once more at the end.
        places = np.arange(samples.count + job.batch - 1) % samples.count
        inputs = as_numbers(np.asarray(samples.inputs)[places], samples.normalisation)
        targets = np.asarray(samples.targets)[places].astype(np.int32)
        held = [
            (mx.nd.array(inputs, ctx=context, dtype=inputs.dtype), mx.nd.array(targets, ctx=context, dtype="int32"))
            for context in contexts
        ]
        self._batches = []
        cycle = cycle_steps(job.workers, job.batch, samples.count)
        for step in range(min(cycle, job.warmup_steps + job.steps)):
            batches = []
            for place, (x, y) in enumerate(held):
                worker = job.rank * job.devices + place
                first = first_sample(step, worker, job.workers, job.batch, samples.count)
                batches.append((x[first : first + job.batch], y[first : first + job.batch]))
            self._batches.append(batches)
        mx.nd.waitall()

    def __call__(self, step):
        """A pair (inputs, targets) for each context."""
        return self._batches[step % len(self._batches)]


class Pipeline(object):
    """Gluon's DataLoader over the memory-mapped file: read, crop, flip, normalise, collate.

    One iterator lasts the whole run (the sampler never ends), so no step waits for an epoch to begin.
    """

    def __init__(self, job, contexts):
        samples = Samples(job.input["index"])
        self._contexts = contexts
        self._iterators = [
            iter(
                DataLoader(
                    PreparedSamples(samples, job.seed),
                    batch_sampler=EndlessBatches(job, job.rank * job.devices + place, samples.count),
                    num_workers=job.input["loader_workers"],
                )
            )
            for place in range(len(contexts))
        ]

    def __call__(self, _step):
        """As `Resident`."""
        return [
            tuple(array.as_in_context(context) for array in next(iterator))
            for iterator, context in zip(self._iterators, self._contexts)
        ]


class PreparedSamples(Dataset):
    """One sample by its place in the file, ready to be trained on."""

    def __init__(self, samples, seed):
        self._samples = samples
        self._seed = seed
        self._read = 0

    def __len__(self):
        return self._samples.count

    def __getitem__(self, place):
        self._read += 1
        inputs, targets = prepared(self._samples, [place], [self._seed, place, self._read])
        return inputs[0], targets[0]


class EndlessBatches(Sampler):
    """The places of a worker's batches, step after step, for as long as anyone asks."""

    def __init__(self, job, worker, samples):
        self._job = job
        self._worker = worker
        self._samples = samples

    def __iter__(self):
        step = 0
        while True:
            yield batch_indices(step, self._worker, self._job.workers, self._job.batch, self._samples)
            step += 1


def open_source(job, contexts):
    """The source that the job asks for."""
    return {"resident": Resident, "pipeline": Pipeline}[job.input["kind"]](job, contexts)
