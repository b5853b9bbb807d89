"""What a TensorFlow rank reads: samples resident in memory, in the order of `paceline_worker.batches`."""

import numpy as np

from paceline_worker.batches import batch_indices, cycle_steps
from paceline_worker.frameworks.samples import Samples


class Resident(object):
    """All batches that the run sees, normalised once and handed to TensorFlow before the first step."""

    def __init__(self, job, put):
        """Args: put: one array for each worker of this process → what the step takes."""
        samples = Samples(job.input["index"])
        inputs = as_numbers(np.asarray(samples.inputs), samples)
        targets = np.asarray(samples.targets).astype(np.int32)
        self._batches = []
        cycle = cycle_steps(job.workers, job.batch, samples.count)
        for step in range(min(cycle, job.warmup_steps + job.steps)):
            places = [
                batch_indices(step, job.rank * job.devices + device, job.workers, job.batch, samples.count)
                for device in range(job.devices)
            ]
            self._batches.append((put([inputs[own] for own in places]), put([targets[own] for own in places])))

    def __call__(self, step):
        return self._batches[step % len(self._batches)]


def as_numbers(stored, samples):
    """Tokens as they are; anything else as (x - subtract) / divide, images channels-last."""
    if samples.normalisation is None:
        return stored.astype(np.int32)
    subtract, divide = (np.float32(samples.normalisation[name]) for name in ("subtract", "divide"))
    numbers = (stored.astype(np.float32) - subtract) / divide
    return numbers.transpose(0, 2, 3, 1) if samples.kind == "image" else numbers
