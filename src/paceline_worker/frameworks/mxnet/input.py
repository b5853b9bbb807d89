"""What an MXNet rank reads: samples resident in memory, in the order of `paceline_worker.batches`."""

import mxnet as mx
import numpy as np

from paceline_worker.batches import cycle_steps, first_sample
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


def as_numbers(stored, normalisation):
    """Tokens as they are; anything else as (x - subtract) / divide."""
    if normalisation is None:
        return stored.astype(np.int32)
    subtract, divide = (np.float32(normalisation[name]) for name in ("subtract", "divide"))
    return (stored.astype(np.float32) - subtract) / divide
