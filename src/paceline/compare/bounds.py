"""Strategies that do not promise exactness, held to what bounds them: the reasoned bound of each approximation. Pure.

A falling loss alone would let a gradient pass that is twice too long or points elsewhere. What is allowed is what
float32 rounding is allowed, and what each approximation may add; where that cannot be known, it is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.compare.distances import FLOAT32_SPACING, Distance, gradient_distance, length_distance
from paceline.compare.proof_evidence import ProofEvidence
from paceline.plan.approximation import FACTOR, Approximation
from paceline.plan.vocabulary import ASYNCHRONOUS


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """How an approximate or asynchronous strategy stands to its bounds."""

    distances: tuple[Distance, ...] = ()
    unbounded: tuple[str, ...] = ()
    """What nothing bounds, and why."""
    by: tuple[Approximation, ...] = ()
    """Approximations whose bounds were applied."""

    def exceeded(self) -> list[str]:
        """Every bound that does not hold, in words."""
        return [
            f"{d.what} is {d.distance:.1e} from what it should be, and this approximation allows {d.allowed:.1e}"
            for d in self.distances
            if not d.ok
        ]


def hold(evidence: ProofEvidence, reference: ProofEvidence, approximations: Sequence[Approximation]) -> Held:
    """Hold a proof run to the bounds of the ways in which it gives up exactness."""
    if evidence.trial.framework.strategy_class == ASYNCHRONOUS:
        return Held(distances=_gradient(evidence, reference, None), unbounded=_asynchronous(evidence))
    bounds = [_gradient_bound(approximation, reference) for approximation in approximations]
    unbounded = [bound for bound in bounds if isinstance(bound, str)]
    if not approximations:
        unbounded.append("the gradient, because the framework declares no bound for what it gives up")
    elif not evidence.shown.gradients:
        unbounded.append("the gradient, because the run does not show it")
    allowed = None if unbounded else _rounding(reference) + sum(bound for bound in bounds if isinstance(bound, float))
    exchanges = [_exchange(evidence, approximation) for approximation in approximations]
    unbounded += [exchange for exchange in exchanges if isinstance(exchange, str)]
    unbounded += [approximation.beyond for approximation in approximations if approximation.beyond is not None]
    return Held(
        distances=(
            *_gradient(evidence, reference, allowed),
            *(exchange for exchange in exchanges if isinstance(exchange, Distance)),
        ),
        unbounded=tuple(unbounded),
        by=tuple(approximations) if allowed is not None else (),
    )


def _gradient(evidence: ProofEvidence, reference: ProofEvidence, allowed: float | None) -> tuple[Distance, ...]:
    """Of step 0, as far as the run shows it: its distance, and its length, which is known exactly."""
    if not evidence.shown.gradients:
        return ()
    measures = (("gradient", gradient_distance), ("length of the gradient", length_distance))
    return tuple(
        Distance(what=what, distance=measure(evidence.shown, reference.shown), allowed=allowed)
        for what, measure in measures
    )


def _rounding(reference: ProofEvidence) -> float:
    """What an exact strategy would be allowed."""
    rounded = (gradient_distance(rounding, reference.shown) for rounding in reference.roundings)
    return FACTOR * max(FLOAT32_SPACING, *rounded)


def _gradient_bound(approximation: Approximation, reference: ProofEvidence) -> float | str:
    """What an approximation may add to the distance of the first gradient, or why that is not known."""
    if approximation.gradient is None:
        return f"the gradient, because {approximation.because}"
    if approximation.computes_in is None:
        return approximation.gradient
    coarse = reference.coarse(approximation.computes_in)
    if coarse is None:
        return (
            f"the gradient, because the reference in this store does not report what {approximation.computes_in} does "
            "to it"
        )
    return approximation.gradient + FACTOR * gradient_distance(coarse, reference.shown)


def _exchange(evidence: ProofEvidence, approximation: Approximation) -> Distance | str | None:
    """What compressed exchanges lose, held to its bound; why that is not known; or None, where nothing is exchanged."""
    if approximation.exchange is None or evidence.trial.workers == 1:
        return None
    lost = evidence.record.reported.exchange_error
    if lost is None:
        return "what an exchange loses, because the run does not report it"
    return Distance(what="exchange", distance=lost, allowed=approximation.exchange)


def _asynchronous(evidence: ProofEvidence) -> tuple[str, ...]:
    """Each worker applies its own gradient: how many updates it may be late is all that bounds it."""
    if evidence.record.reported.staleness is not None:
        return ("gradients, but for their staleness, because each worker applies its own",)
    return ("gradients, because each worker applies its own, and how late is not known",)
