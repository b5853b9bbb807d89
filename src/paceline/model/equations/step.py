"""The work and messages of a training step, as read by both the closed form and the event simulation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FIRST_BUCKET_BYTES = 2**20
BUCKET_BYTES = 25 * 2**20
"""Bucket sizes that PyTorch uses by default."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """Times per worker and step, layer by layer from input to output."""

    forward_s: Floats
    backward_s: Floats
    gradient_bytes: Floats
    """Gradient bytes of each layer; 0 for a layer without parameters."""
    input_s: float = 0.0
    """Seconds to fetch a batch; hidden behind the previous step if prefetched."""
    copy_s: float = 0.0
    """Seconds to copy a batch from host to device; hidden like the input."""
    update_s: float = 0.0
    overhead_s: float = 0.0
    """Framework overhead on the critical path of every step."""
    prefetch: bool = True

    @property
    def forward_total_s(self) -> float:
        return float(self.forward_s.sum())

    @property
    def backward_total_s(self) -> float:
        return float(self.backward_s.sum())

    def scaled(self, factor: float) -> Profile:
        """The same worker with all compute slower by a factor."""
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
    """The messages of a step, in the order in which they are sent on one stream."""

    ready_s: Floats
    """Seconds from the start of the backward pass until all gradients of a message are ready."""
    sizes: Floats
    """Bytes of each message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Buckets:
    """Bucket sizes. Gradients fill a bucket in the order in which they become ready, as in PyTorch's DDP.

    A cap of 0 sends each gradient as its own message: wait-free back-propagation (Zhang et al. 2017, Poseidon). An
    infinite cap sends everything at the end of the backward pass, without overlap.
    """

    first_bytes: float = FIRST_BUCKET_BYTES
    cap_bytes: float = BUCKET_BYTES

    def sizes_of(self, total: float) -> tuple[float, ...]:
        """Sizes of the messages that carry this many bytes, were gradients small."""
        sizes: list[float] = []
        while total > 0:
            sizes.append(min(total, self.cap_bytes if sizes else self.first_bytes))
            total -= sizes[-1]
        return tuple(sizes)


def ready_order(profile: Profile) -> tuple[Floats, Floats]:
    """(seconds until ready, bytes) of all gradients in the order of the backward pass, last layer first."""
    ready = np.cumsum(profile.backward_s[::-1])
    sizes = profile.gradient_bytes[::-1]
    sent = sizes > 0
    return ready[sent], sizes[sent]


def bucketed(profile: Profile, buckets: Buckets) -> Messages:
    """The messages of a step with buckets; a bucket is sent when a gradient fills it."""
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
    """One stage of a sharded step: layers whose weights are gathered and scattered together."""

    forward_s: float
    backward_s: float
    bytes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """The parts of a predicted step; they sum up to the step time."""

    step_s: float
    forward_s: float
    backward_s: float
    exposed_s: float
    """Exposed communication: not hidden behind compute."""
    update_s: float
    overhead_s: float
    input_s: float
    """Input and copy time that is not hidden behind the step."""
    communication_s: float = field(default=0.0)
    """All communication, hidden or not."""
