"""Compares records: rows, verdicts, and notes on what is not ranked together. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from paceline.compare.efficiency import scaling
from paceline.compare.fairness import Fairness, Proof
from paceline.compare.gaps import factor_behind
from paceline.compare.labels import label_rows
from paceline.compare.proof_evidence import traits_of
from paceline.compare.rows import Row, make_row
from paceline.compare.runs import Runs, gather
from paceline.compare.verdicts import PairVerdict, judge, unlike
from paceline.plan.trial import Trial
from paceline.record.record import Record
from paceline.stats import LEVEL, MARGIN, Verdict

__all__ = ["Comparison", "Note", "compare"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A note on the whole table."""

    code: Literal["machines", "classes", "simulated", "shortened"]
    message: str
    """What is not ranked together, and why."""
    hint: str = ""
    """The option that changes it."""

    def to_json(self) -> dict[str, object]:
        return {"code": self.code, "message": self.message, "hint": self.hint}


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The result of comparing a set of records."""

    rows: tuple[Row, ...]
    """One row per trial, or per trial and machine if it was run on several."""
    verdicts: tuple[PairVerdict, ...]
    """One verdict per pair of rows that answer the same question."""
    notes: tuple[Note, ...]
    """What is not ranked together."""
    shared: str
    """What all rows have in common, in words."""
    margin: float
    """The relative difference that counts as equal."""
    proofs: tuple[Proof, ...] = ()
    """The proofs that the rows compute the same."""

    def row(self, key: str) -> Row:
        return next(row for row in self.rows if row.key == key)

    def to_json(self) -> dict[str, object]:
        """Returns the comparison with the names of docs/reference; every number is finite or null."""
        return {
            "rows": [row.to_json() for row in self.rows],
            "verdicts": [verdict.to_json() for verdict in self.verdicts],
            "notes": [note.to_json() for note in self.notes],
            "fairness": [proof.to_json() for proof in self.proofs],
            "shared": self.shared,
            "margin": self.margin,
            "level": LEVEL,
        }


def compare(
    records: Iterable[Record],
    *,
    trials: Sequence[Trial] | None = None,
    skipped: Mapping[str, str] | None = None,
    margin: float = MARGIN,
    across_machines: bool = False,
    fairness: Fairness | None = None,
) -> Comparison:
    """Returns the comparison of records.

    Args:
        records: records of any studies and machines.
        trials: the trials of the rows, in this order, with or without records; None for all trials that have records.
        skipped: trial id → why it will not run.
        margin: the relative difference that counts as equal.
        across_machines: whether rows of different machines or states of an environment are ranked too.
        fairness: the proofs; rows of two frameworks without a proof are not ranked.
    """
    groups = gather(records, trials)
    keys = _keys(groups)
    labels = label_rows([group.trial for group in groups], [group.machine for group in groups])
    rows = tuple(
        make_row(
            group,
            key=key,
            label=label,
            scaling=scaled,
            base=None if scaled.base is None else keys[scaled.base],
            skip=(skipped or {}).get(group.trial.id),
        )
        for group, key, label, scaled in zip(groups, keys, labels.each, scaling(groups), strict=True)
    )
    verdicts = judge(groups, keys, margin=margin, across_machines=across_machines, fairness=fairness)
    by_key = {row.key: (row, _traits(group)) for row, group in zip(rows, groups, strict=True)}
    verdicts = [_explained(pair, *by_key[pair.a], *by_key[pair.b]) for pair in verdicts]
    return Comparison(
        rows=rows,
        verdicts=tuple(verdicts),
        notes=tuple(_notes(groups, across_machines=across_machines)),
        shared=labels.shared,
        margin=margin,
        proofs=tuple(fairness.proofs.values()) if fairness else (),
    )


def _traits(group: Runs) -> dict[str, str]:
    return traits_of(group.measured[0][0]) if group.measured else {}


def _explained(
    pair: PairVerdict, a: Row, a_traits: Mapping[str, str], b: Row, b_traits: Mapping[str, str]
) -> PairVerdict:
    """Returns the verdict of a difference with the phase that causes most of it."""
    if pair.verdict != Verdict.DIFFERENT.words:
        return pair
    return replace(pair, factor=factor_behind(a, b, a_traits, b_traits))


def _keys(groups: Sequence[Runs]) -> list[str]:
    rows_of = Counter(group.trial.id for group in groups)
    machines_of = Counter((group.trial.id, group.machine) for group in groups)
    keys = []
    for group in groups:
        key = group.trial.id
        if rows_of[group.trial.id] > 1:
            key += f"@{group.machine}"
        if machines_of[group.trial.id, group.machine] > 1:
            key += f"+{group.fingerprint}"
        keys.append(key)
    return keys


def _notes(groups: Sequence[Runs], *, across_machines: bool) -> list[Note]:
    measured = [group for group in groups if group.measured]
    notes = []
    if why := next((why for group in measured if (why := unlike(measured[0], group))), None):
        how = "ranked anyway, as requested" if across_machines else "not ranked against each other"
        hint = "" if across_machines else "rank them anyway: --across-machines"
        notes.append(Note(code="machines", message=f"rows were {why}: {how}", hint=hint))
    if len(classes := {group.trial.framework.strategy_class for group in measured}) > 1:
        listed = ", ".join(sorted(classes))
        notes.append(
            Note(
                code="classes",
                message=f"strategies of different classes ({listed}) are not ranked in one list",
            )
        )
    if len({group.trial.framework.simulated for group in measured}) > 1:
        notes.append(Note(code="simulated", message="simulated times are never ranked against measured ones"))
    elif measured and measured[0].trial.framework.simulated:
        notes.append(
            Note(
                code="simulated",
                message="times are drawn from a law (simulated), not measured on this machine",
            )
        )
    return notes
