"""The evidence of a proof run: losses, gradients, weights and properties, read from its record. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from paceline.plan.vocabulary import ASYNCHRONOUS
from paceline.record.fact import TensorEvidence, Tensors
from paceline.record.record import Record

ENDS = 2
"""The losses that are averaged at both ends to see whether they fall: the batches of a proof alternate between two."""

Floats = NDArray[np.float64]


TRAITS = ("version", "python", "threads", "layout", "blas", "compiled", "precision", "wrapped", "dropout")
"""The properties that may differ between frameworks that compute the same, in the order of the report."""


def traits_of(record: Record) -> dict[str, str]:
    """Returns the properties that may differ between frameworks that compute the same, as rank 0 reports them."""
    if not record.ranks:
        return {}
    rank = record.ranks[0]
    facts = rank.reported
    values = (
        rank.framework_version,
        rank.python,
        facts.threads,
        facts.layout,
        facts.blas,
        facts.compiled,
        facts.precision,
        facts.wrapped,
        facts.dropout,
    )
    return {name: str(value) for name, value in zip(TRAITS, values, strict=True) if value is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownTensors:
    """What a training reports about its tensors, and the losses of the reference."""

    gradients: Tensors
    weights: Tensors
    statistics: Tensors
    of_workers: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """The losses of the reference, with one row per worker and one column per step; empty for other frameworks."""


class ProofEvidence:
    """The evidence of one proof run."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.trial = record.trial
        self._shown = [dict(rank.reported.evidence or {}) for rank in record.ranks]
        self.shown = ShownTensors(
            gradients=self._held("gradients"), weights=self._held("weights"), statistics=self._held("statistics")
        )

    def _held(self, what: str) -> Tensors:
        """Returns the tensors of all ranks together."""
        held: dict[str, TensorEvidence] = {}
        for shown in self._shown:
            held |= shown.get(what, {})
        return held

    @property
    def of_workers(self) -> Floats:
        """The losses of the reference, with one row per worker and one column per step."""
        return np.asarray(self.record.reported.losses or (), dtype=float)

    @property
    def roundings(self) -> list[ShownTensors]:
        """The float32 trainings of the reference."""
        return [
            ShownTensors(
                gradients=rounding["gradients"],
                weights=rounding["weights"],
                statistics=rounding["statistics"],
                of_workers=np.asarray(rounding["losses"], dtype=float),
            )
            for rounding in self.record.reported.roundings or ()
        ]

    def coarse(self, kept: str) -> ShownTensors | None:
        """The reference's first gradient when every layer rounds to this format; None where it does not report it."""
        gradients = (self.record.reported.coarse_gradients or {}).get(kept)
        return None if gradients is None else ShownTensors(gradients=gradients, weights={}, statistics={})

    @property
    def losses(self) -> Floats:
        """The losses, with one row per rank and one column per step."""
        assert self.record.samples is not None
        table = self.record.samples
        rank, step, loss = (np.asarray(table[name].to_pylist(), dtype=float) for name in ("rank", "step", "loss"))
        return np.stack([loss[rank == r][np.argsort(step[rank == r])] for r in np.unique(rank)])

    def sees(self, of_workers: Floats) -> Floats:
        """Returns losses of workers in the form in which the ranks of this run report theirs."""
        ranks = len(self.losses)
        if ranks == len(of_workers) and not self.loss_is_global:
            return of_workers
        # One process has all workers, or every rank reports the loss of all samples: both report the mean.
        return np.repeat(of_workers.mean(axis=0, keepdims=True), ranks, axis=0)

    @property
    def loss_is_global(self) -> bool:
        return self.record.reported.loss_over == "global"

    @property
    def flops_ratio(self) -> float | None:
        counted, inputs = self.record.reported.framework_flops, self.record.input_facts
        expected = (inputs.forward_flops or 0) + (inputs.backward_flops or 0)
        if not counted or not expected:
            return None
        return counted / (expected * self.trial.workload.batch_per_worker)

    def wrong_parameters(self) -> list[str]:
        """Compares the parameters that each rank counts with those of the graph, even if a rank holds only a part."""
        expected = self.record.input_facts.parameters
        counted = {rank.parameters for rank in self.record.ranks}
        if counted == {expected}:
            return []
        return [f"it trains {min(n or 0 for n in counted)} parameters, the graph has {expected}"]

    def unequal_ranks(self) -> list[str]:
        """Says whether weights that several ranks hold differ after the last step."""
        if self.record.reported.weights_equal_on_devices is False:
            return [f"weights differ between the devices of a process after {len(self.losses[0])} steps"]
        differing = self._differing("weights")
        if not differing:
            return []
        return [f"{len(differing)} trainable tensor(s) differ between ranks after {len(self.losses[0])} steps"]

    def own_statistics(self) -> list[str]:
        differing = self._differing("statistics")
        return [f"{len(differing)} batch-norm statistic(s) differ between ranks"] if differing else []

    def _differing(self, what: str) -> list[str]:
        held: dict[str, list[TensorEvidence]] = {}
        for shown in self._shown:
            for name, tensor in shown.get(what, {}).items():
                held.setdefault(name, []).append(tensor)
        return [name for name, tensors in held.items() if any(tensor != tensors[0] for tensor in tensors)]

    def _ends(self) -> tuple[float, float]:
        course = self.losses.mean(axis=0)
        return float(course[:ENDS].mean()), float(course[-ENDS:].mean())

    def loss_does_not_fall(self) -> list[str]:
        first, last = self._ends()
        return [] if last < first else [f"the loss does not fall: {first:.4g}, then {last:.4g}"]

    def loss_course(self) -> str:
        first, last = self._ends()
        return f"loss falls from {first:.4g} to {last:.4g} in {len(self.losses[0])} steps"

    def staleness(self) -> list[str]:
        staleness = self.record.reported.staleness
        if self.trial.framework.strategy_class != ASYNCHRONOUS:
            return []
        if staleness is None:
            return ["staleness is not known"]
        return [f"staleness {staleness.mean:.2g} updates on average, {staleness.max:g} at most"]

    def compression_error(self) -> list[str]:
        lost = self.record.reported.compression_error
        return [] if lost is None else [f"compression loses {lost:.2g} of the gradient"]
