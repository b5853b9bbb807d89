"""The fairness proof in words and as a table: who computes the same, how close, and what still differs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from paceline.compare import AGREES, TRAITS, Distance, Proof
from paceline.plan.vocabulary import EXACT
from paceline.report.table import Column, draw

LEGEND = (
    "1w, 2w: workers. Distances are relative to the float64 reference; in brackets what is allowed: 5 × that of "
    "PyTorch's own float32, and what an approximation may add. In bounds: the loss falls and every bound holds. "
    "FLOPs: the framework's own count per step ÷ the graph's."
)


def fairness_sentences(proofs: Sequence[Proof]) -> list[str]:
    """A sentence for what agrees, one for each that does not, one for what still differs."""
    sentences = proof_sentences(proofs)
    if differing := differences(proofs):
        sentences.append("what still differs: " + "; ".join(differing))
    return sentences


def fairness_in_short(proofs: Sequence[Proof]) -> list[str]:
    """Whether what was compared computes the same, in a sentence; each proof that fails or is missing by itself."""
    agreeing = list(dict.fromkeys(proof.name for proof in proofs if proof.verdict == AGREES))
    learning = any(proof.verdict == AGREES and proof.strategy_class != EXACT for proof in proofs)
    does = "compute what they promise" if learning else "compute the same as the float64 reference"
    agreed = [f"{', '.join(agreeing)} {does}"] if agreeing else []
    return [*agreed, *_refused(proofs)]


def proof_sentences(proofs: Sequence[Proof]) -> list[str]:
    """The sentences about agreement and refusals, without remaining differences."""
    return [
        *(_agreement(workload, agreeing) for workload, agreeing in _by_workload(proofs) if agreeing),
        *_refused(proofs),
    ]


def _refused(proofs: Sequence[Proof]) -> list[str]:
    """Proofs that fail or are missing."""
    refused: dict[tuple[str, str], list[str]] = {}
    for proof in proofs:
        if proof.verdict != AGREES:
            why = f"{proof.verdict}: {'; '.join(proof.reasons)}"
            refused.setdefault((proof.name, why), []).append(f"{proof.workload}, {_workers(proof)}")
    return [f"{name} on {' and on '.join(where)}: {why}" for (name, why), where in refused.items()]


def fairness_table(proofs: Sequence[Proof], width: int) -> str:
    """One row per framework, strategy, workload and number of workers: each distance, and what was allowed."""
    first = Column(header="", cells=tuple(f"{p.workload} {p.workers}w {p.name}" for p in proofs), right=False)
    columns = [
        Column(header="", cells=tuple(shown_verdict(p) for p in proofs), right=False),
        Column(header="loss, step 0", cells=tuple(_cell(p, "loss of step 0") for p in proofs)),
        Column(header="worst loss of 20", cells=tuple(_cell(p, "loss of step", last=True) for p in proofs)),
        Column(header="gradient norms", cells=tuple(_cell(p, "gradient norms") for p in proofs)),
        Column(header="gradient", cells=tuple(_cell(p, "gradient", exactly=True) for p in proofs)),
        Column(header="exchange", cells=tuple(_cell(p, "exchange") for p in proofs)),
        Column(header="weights after", cells=tuple(_cell(p, "weights") for p in proofs)),
        Column(header="FLOPs", cells=tuple("" if p.flops_ratio is None else f"× {p.flops_ratio:.2f}" for p in proofs)),
    ]
    shown = [column for column in columns if any(column.cells)]
    return f"{draw(first, shown, width)}\n{textwrap.fill(LEGEND, width)}"


def differences(proofs: Iterable[Proof]) -> list[str]:
    """Traits in which frameworks part, each with who has what."""
    sentences = []
    for trait in TRAITS:
        held: dict[str, list[str]] = {}
        for proof in proofs:
            if (value := proof.traits.get(trait)) is not None and proof.framework not in held.setdefault(value, []):
                held[value].append(proof.framework)
        if len(held) > 1:
            sentences.append(f"{trait}: " + ", ".join(f"{value} ({', '.join(who)})" for value, who in held.items()))
    return sentences


def _agreement(workload: str, proofs: Sequence[Proof]) -> str:
    """Who agrees with the reference, and who keeps the smaller promise of an approximate or asynchronous class."""
    sentences = []
    for promise in dict.fromkeys(proof.strategy_class for proof in proofs):
        members = [proof for proof in proofs if proof.strategy_class == promise]
        who = f"{', '.join(dict.fromkeys(p.name for p in members))}"
        sides = " and ".join(dict.fromkeys(_workers(proof) for proof in members))
        if promise == EXACT:
            does = f"agree with the float64 reference{_at_worst(members)}"
        elif worst := _at_worst(members):
            does = f"learn, as {promise} strategies promise, within their bounds{worst}"
        else:
            does = f"learn, which is all that is known of these {promise} strategies"
        sentences.append(f"{workload}, {sides}: {who} {does}")
    remarks: dict[str, list[str]] = {}
    for proof in proofs:
        for line in proof.told:
            if proof.name not in remarks.setdefault(line, []):
                remarks[line].append(proof.name)
    return "; ".join([*sentences, *(f"{', '.join(who)}: {line}" for line, who in remarks.items())])


def _at_worst(proofs: Sequence[Proof]) -> str:
    """What comes closest to its bound, in brackets; nothing where nothing is bounded."""
    bounded = [(d.distance / d.allowed, d) for p in proofs for d in p.distances if d.allowed]
    if not bounded:
        return ""
    _, closest = max(bounded, key=lambda pair: pair[0])
    return f" (at worst the {closest.what}: {_numbers(closest)})"


def shown_verdict(proof: Proof) -> str:
    """An approximate strategy does not agree with anything: its loss falls, and if all of it is bounded, it says so."""
    if proof.verdict != AGREES or proof.strategy_class == EXACT:
        return proof.verdict
    return "loss falls" if proof.unbounded or not proof.distances else "in bounds"


def _by_workload(proofs: Sequence[Proof]) -> list[tuple[str, list[Proof]]]:
    workloads = dict.fromkeys(proof.workload for proof in proofs)
    return [(w, [p for p in proofs if p.workload == w and p.verdict == AGREES]) for w in workloads]


def _workers(proof: Proof) -> str:
    return f"{proof.workers} worker{'s' if proof.workers > 1 else ''}"


def _cell(proof: Proof, what: str, *, last: bool = False, exactly: bool = False) -> str:
    distances = [d for d in proof.distances if (d.what == what if exactly else d.what.startswith(what))]
    return _numbers(distances[-1 if last else 0]) if distances else ""


def _numbers(distance: Distance) -> str:
    allowed = "" if distance.allowed is None else f" ({distance.allowed:.1e})"
    return f"{distance.distance:.1e}{allowed}"
