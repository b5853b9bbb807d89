"""What a worker does in a training step, and what has to be exchanged: the one description that both engines read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FIRST_BUCKET_BYTES = 2**20
BUCKET_BYTES = 25 * 2**20
"""PyTorch's defaults."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Times of one worker and step, layer by layer from input to output."""

    forward_s: Floats
    backward_s: Floats
    gradient_bytes: Floats
    """Of each layer; 0 for one without parameters."""
    input_s: float = 0.0
    """Until a batch is at hand; hidden behind the step before where it is prefetched."""
    copy_s: float = 0.0
    """Host to device; as the input."""
    update_s: float = 0.0
    overhead_s: float = 0.0
    """The framework's own, on the critical path of every step."""
    prefetch: bool = True

    @property
    def forward_total_s(self) -> float:
        return float(self.forward_s.sum())

    @property
    def backward_total_s(self) -> float:
        return float(self.backward_s.sum())

    def scaled(self, factor: float) -> Profile:
        """The same worker with all of its computing slower by a factor."""
        return Profile(
            forward_s=self.forward_s * factor,
            backward_s=self.backward_s * factor,
            gradient_bytes=self.gradient_bytes,
            input_s=self.input_s,
            copy_s=self.copy_s,
            update_s=self.update_s * factor,
            overhead_s=self.overhead_s * factor,
            prefetch=self.prefetch,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Messages:
    """What is exchanged in a step, in the order in which it is sent on one stream."""

    ready_s: Floats
    """Since the backward pass began: when the last gradient in it is there."""
    sizes: Floats
    """Bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Buckets:
    """Gradients are gathered, in the order in which they become ready, until a bucket is full, as PyTorch's DDP does.

    A cap of 0 sends every gradient by itself: wait-free back-propagation (Zhang et al. 2017, Poseidon). An endless one
    sends all at the end of the backward pass: no overlap.
    """

    first_bytes: float = FIRST_BUCKET_BYTES
    cap_bytes: float = BUCKET_BYTES


def ready_order(profile: Profile) -> tuple[Floats, Floats]:
    """(when, bytes) of all gradients in the order of the backward pass, last layer first."""
    ready = np.cumsum(profile.backward_s[::-1])
    sizes = profile.gradient_bytes[::-1]
    sent = sizes > 0
    return ready[sent], sizes[sent]


def bucketed(profile: Profile, buckets: Buckets) -> Messages:
    """Messages of a step with buckets: one is closed by the gradient that fills it."""
    ready, sizes = ready_order(profile)
    closed_at: list[float] = []
    bytes_in: list[float] = []
    held, cap = 0.0, buckets.first_bytes
    for when, size in zip(ready, sizes, strict=True):
        held += size
        if held >= cap:
            closed_at.append(when)
            bytes_in.append(held)
            held, cap = 0.0, buckets.cap_bytes
    if held:
        closed_at.append(float(ready[-1]) if np.isfinite(cap) else profile.backward_total_s)
        bytes_in.append(held)
    return Messages(ready_s=np.array(closed_at), sizes=np.array(bytes_in))


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One piece of a sharded step: a group of layers whose weights are gathered and scattered together."""

    forward_s: float
    backward_s: float
    bytes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """Where the time of a predicted step goes; the parts sum up to the step."""

    step_s: float
    forward_s: float
    backward_s: float
    exposed_s: float
    """Communication that no computing hides."""
    update_s: float
    overhead_s: float
    input_s: float
    """What of input and copy is not hidden behind the step."""
    communication_s: float = field(default=0.0)
    """All communication, hidden or not."""
