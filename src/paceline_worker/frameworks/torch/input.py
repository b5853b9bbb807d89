"""What a PyTorch rank reads: samples resident in memory, or a real pipeline of `torch.utils.data`.

Both deal out the samples in the order of `paceline_worker.batches`. A source is called with the number of the step and
returns (inputs, targets) on the rank's device.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from paceline_worker.batches import batch_indices, cycle_steps, first_sample
from paceline_worker.frameworks.prepared import CROP_PADDING
from paceline_worker.frameworks.samples import Samples
from paceline_worker.lifeline import tied_to_this_process


class Part(NamedTuple):
    """A rank's part of each step's samples: the index-th of `count` equal ones, of `size` samples."""

    index: int
    count: int
    size: int


def own_batch(job):
    """The part of a rank that has a batch of its own."""
    return Part(job.rank, job.world_size, job.batch)


def global_batch(job):
    """All samples of a step, for ranks that share the model and not the samples."""
    return Part(0, 1, job.batch * job.workers)


class Resident(object):
    """All samples normalised once; a batch is a view of them, so that a step copies nothing."""

    def __init__(self, job, part, memory_format, device):
        samples = Samples(job.input["index"])
        # A batch that wraps at the end of the file must be contiguous too: the first samples once more at the end.
        places = np.arange(samples.count + part.size - 1) % samples.count
        inputs = torch.from_numpy(np.asarray(samples.inputs)[places])
        inputs = as_numbers(inputs, samples.normalisation)
        if samples.kind == "image":
            inputs = inputs.contiguous(memory_format=memory_format)
        inputs = inputs.to(device)
        targets = torch.from_numpy(np.asarray(samples.targets)[places]).long().to(device)
        self._batches = []
        for step in range(cycle_steps(part.count, part.size, samples.count)):
            first = first_sample(step, part.index, part.count, part.size, samples.count)
            self._batches.append((inputs[first : first + part.size], targets[first : first + part.size]))

    def __call__(self, step):
        return self._batches[step % len(self._batches)]

    def close(self):
        pass


class Pipeline(object):
    """A DataLoader over the memory-mapped file: read, crop, flip, normalise, collate.

    One iterator lasts the whole run (the sampler never ends), so no step waits for an epoch to begin. Loader workers
    share the rank's cores: they are part of its budget.
    """

    def __init__(self, job, part, memory_format, device):
        samples = Samples(job.input["index"])
        self._device = device
        workers = job.input["loader_workers"]
        loader = DataLoader(
            PreparedSamples(samples),
            batch_sampler=EndlessBatches(part, samples.count),
            num_workers=workers,
            collate_fn=Collate(memory_format if samples.kind == "image" else torch.contiguous_format),
            pin_memory=device.type == "cuda",
            worker_init_fn=tied_to_this_process(),
            # A forked child's parent is the rank itself, which the tie relies on; a fork server's is not.
            multiprocessing_context="fork" if workers else None,
            # Every rank draws its own crops and flips.
            generator=torch.Generator().manual_seed(job.seed * job.world_size + job.rank),
        )
        self._iterator = iter(loader)

    def __call__(self, _step):
        inputs, targets = next(self._iterator)
        return inputs.to(self._device, non_blocking=True), targets.to(self._device, non_blocking=True)

    def close(self):
        # The iterator ends its workers when it goes.
        self._iterator = None


class PreparedSamples(Dataset):
    """One sample by its place in the file, ready to be trained on."""

    def __init__(self, samples):
        self._samples = samples

    def __getitem__(self, place):
        samples = self._samples
        stored = np.asarray(samples.inputs[place])
        target = torch.tensor(samples.targets[place], dtype=torch.long)
        if samples.kind == "image":
            stored = random_crop_and_flip(stored)
        # Not `from_numpy`: the file is mapped read-only, and PyTorch warns of that.
        return as_numbers(torch.tensor(stored), samples.normalisation), target


class EndlessBatches(Sampler):
    """The places of a rank's batches, step after step, for as long as anyone asks."""

    def __init__(self, part, samples):
        self._part = part
        self._samples = samples

    def __iter__(self):
        part, step = self._part, 0
        while True:
            yield batch_indices(step, part.index, part.count, part.size, self._samples)
            step += 1


class Collate(object):
    """Stack samples into a batch of the wanted layout, in the loader worker."""

    def __init__(self, memory_format):
        self._memory_format = memory_format

    def __call__(self, pairs):
        inputs = torch.stack([sample for sample, _ in pairs]).contiguous(memory_format=self._memory_format)
        return inputs, torch.stack([target for _, target in pairs])


def as_numbers(stored, normalisation):
    """Tokens as the indices that PyTorch wants; anything else as (x - subtract) / divide."""
    if normalisation is None:
        return stored.long()
    return stored.float().sub_(normalisation["subtract"]).div_(normalisation["divide"])


def random_crop_and_flip(image):
    """A window of the image's own size out of the image with zeros around it, mirrored every other time."""
    span = 2 * CROP_PADDING + 1
    # One draw of PyTorch's generator, which the loader seeds in each of its workers.
    drawn = int(torch.randint(2 * span * span, ()))
    drawn, flip = divmod(drawn, 2)
    down, right = (offset - CROP_PADDING for offset in divmod(drawn, span))
    _, height, width = image.shape
    crop = np.zeros_like(image)
    crop[:, max(0, -down) : height - max(0, down), max(0, -right) : width - max(0, right)] = image[
        :, max(0, down) : height + min(0, down), max(0, right) : width + min(0, right)
    ]
    return crop[:, :, ::-1].copy() if flip else crop


class Nothing(object):
    """For a rank that computes with what others hand it."""

    def __call__(self, _step):
        return None, None

    def close(self):
        pass


def open_source(job, part, memory_format, device):
    """The source that the job asks for; `part` is None where the rank reads nothing."""
    if part is None:
        return Nothing()
    kind = {"resident": Resident, "pipeline": Pipeline}[job.input["kind"]]
    return kind(job, part, memory_format, device)
