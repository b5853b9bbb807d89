"""How many samples a program trains in a step, read from the sizes of what it gives its model.

Which size that is depends on the program: batches come first or second (sequence-first models), in a dict, as a list of
images, packed, or counted in tokens. So every size that may be it is a reading, and the one that fits the study's batch
is believed. If none does, nothing is known, unless all inputs agree on their first size: then the study is doubted.
"""

from collections import Counter
from collections.abc import Mapping

import torch
from torch.nn.utils.rnn import PackedSequence

FIRST, SECOND, TOKENS, LENGTH = "first", "second", "tokens", "length"
"""Sizes that may count samples: a tensor's first two, their product for tokens, and how many things a list holds."""
TOLERANCE = 0.01
"""As the check of the record has it: a mean within one per cent of the study's batch is that batch."""
FEW = 4
"""Of a list, and for people to read: its further members are like the first ones."""


class SampleCounter(object):
    """Counts every reading over the measured steps, and then tells which one it was."""

    def __init__(self, batch):
        """Args: batch: samples per worker and step, by the study."""
        self._batch = batch
        self._step = Counter()
        self._totals = {}
        """Reading → Counter of its totals in the measured steps."""
        self._shapes = []

    def clear(self):
        """What was seen belongs to no step."""
        self._step = Counter()

    def forward(self, inputs):
        """A forward pass of the step under way has these inputs."""
        sizes, shapes = {}, []
        for place, value in enumerate(inputs):
            _read(value, (place,), sizes, shapes)
        self._step.update(sizes)
        self._shapes = self._shapes or shapes

    def end_step(self, measured):
        if measured:
            for reading, total in self._step.items():
                self._totals.setdefault(reading, Counter())[total] += 1
        self._step = Counter()

    def facts(self):
        """`samples_per_step`, and `unmatched_inputs` where the sizes contradict the study."""
        samples = [self._mean(totals) for totals in self._totals.values() if self._fits(totals)]
        contradicted = bool(self._totals) and not samples and self._agree()
        return {
            "samples_per_step": samples[0] if samples else None,
            "unmatched_inputs": [" × ".join(map(str, shape)) for shape in self._shapes[:FEW]] if contradicted else None,
        }

    def _fits(self, totals):
        """Whether it usually is the batch, or is it on average; the last batch of an epoch may be smaller."""
        usual = totals.most_common(1)[0][0]
        return usual == self._batch or abs(self._mean(totals) - self._batch) <= TOLERANCE * self._batch

    def _agree(self):
        return len({shape[0] for shape in self._shapes}) == 1

    def _mean(self, totals):
        return sum(total * steps for total, steps in totals.items()) / float(sum(totals.values()))


def _read(value, place, sizes, shapes):
    """Add to `sizes` every reading of a value with its number, and to `shapes` those of its tensors."""
    if isinstance(value, PackedSequence):
        sizes[place, LENGTH] = int(value.batch_sizes[0])
        _read(value.data, place, sizes, shapes)
    elif isinstance(value, torch.Tensor):
        if value.is_nested:
            sizes[place, FIRST] = value.size(0)
        elif value.dim():
            _read_tensor(value, place, sizes)
            shapes.append(tuple(value.shape))
    elif isinstance(value, Mapping):
        for name, member in value.items():
            _read(member, place + (name,), sizes, shapes)
    elif isinstance(value, (list, tuple)):
        sizes[place, LENGTH] = len(value)
        for number, member in enumerate(value[:FEW]):
            _read(member, place + (number,), sizes, shapes)


def _read_tensor(tensor, place, sizes):
    sizes[place, FIRST] = tensor.shape[0]
    if tensor.dim() > 1:
        sizes[place, SECOND] = tensor.shape[1]
        if not tensor.is_floating_point():
            sizes[place, TOKENS] = tensor.shape[0] * tensor.shape[1]
