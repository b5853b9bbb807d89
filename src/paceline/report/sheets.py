"""The tables of a report: measurements, verdicts on pairs, and distances of the fairness proofs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from paceline.compare import Comparison, Proof, Row
from paceline.report import numbers
from paceline.report.fairness import shown_verdict
from paceline.report.sheet import Cell, Field, Line, Sheet, fields, measured, number, word
from paceline.report.text import shown_efficiency, shown_runs


def measurement_sheet(comparison: Comparison) -> Sheet:
    """Throughput, step time, speed-up, efficiency, CPU and memory of every row, each with its 95 % interval."""
    scaled = any(row.efficiency for row in comparison.rows)
    columns = [
        *fields(label="trial", runs="runs", throughput="samples/s", step_s="step"),
        *(fields(speedup="speed-up", efficiency="efficiency") if scaled else ()),
        *fields(cpu_utilisation="CPU", peak_rss_bytes="memory"),
    ]
    return Sheet(
        caption=f"{comparison.shared}. In brackets: 95 % interval of the mean over runs",
        fields=tuple(columns),
        lines=tuple(
            Line(key=row.key, cells=tuple(_measurement(row, column) for column in columns)) for row in comparison.rows
        ),
    )


def _measurement(row: Row, column: Field) -> Cell:
    if column.name == "label":
        return word(row.label)
    if column.name == "runs":
        return number(row.n_runs, shown_runs(row))
    quantity = getattr(row, column.name)
    shown = {
        "throughput": numbers.over_runs,
        "step_s": numbers.seconds,
        "cpu_utilisation": numbers.percent,
        "peak_rss_bytes": numbers.size,
    }.get(column.name, numbers.plain)
    return measured(quantity, shown_efficiency(row) if column.name == "efficiency" else shown(quantity))


def verdict_sheet(comparison: Comparison) -> Sheet:
    """Every pair that answers the same question."""
    labels = {row.key: row.label for row in comparison.rows}
    return Sheet(
        caption="Ratio of throughputs with its 95 % interval; p after Holm's correction over all pairs",
        fields=fields(
            faster="trial", slower="against", ratio="ratio", p_adjusted="p", runs="runs", verdict="verdict", note="note"
        ),
        lines=tuple(
            Line(
                key=f"{pair.a}|{pair.b}",
                cells=(
                    word(labels[pair.a]),
                    word(labels[pair.b]),
                    measured(pair.ratio, numbers.plain(pair.ratio)),
                    word("-") if pair.p_adjusted is None else number(pair.p_adjusted, numbers.p_value(pair.p_adjusted)),
                    number(pair.n_runs, str(pair.n_runs)),
                    word(pair.verdict),
                    word(pair.note),
                ),
            )
            for pair in comparison.verdicts
        ),
    )


def fairness_sheet(proofs: Sequence[Proof]) -> Sheet:
    """Every distance from the float64 reference beside what rounding allows."""
    return Sheet(
        caption="Distances are relative to the float64 reference; allowed is 5 × that of PyTorch's own float32",
        fields=fields(
            name="framework",
            workload="model",
            workers="workers",
            verdict="verdict",
            what="what",
            distance="distance",
            allowed="allowed",
        ),
        lines=tuple(line for proof in proofs for line in _distances(proof)),
    )


def _distances(proof: Proof) -> Iterable[Line]:
    about = (word(proof.name), word(proof.workload), number(proof.workers, str(proof.workers)))
    verdict = word(shown_verdict(proof))
    for measure in proof.distances:
        allowed = word("-") if measure.allowed is None else number(measure.allowed, f"{measure.allowed:.1e}")
        distance = number(measure.distance, f"{measure.distance:.1e}")
        yield Line(key=proof.trial, cells=(*about, verdict, word(measure.what), distance, allowed))
    if not proof.distances:
        yield Line(key=proof.trial, cells=(*about, verdict, word("; ".join(proof.reasons)), word("-"), word("-")))
