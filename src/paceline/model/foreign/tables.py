"""Published tables of measurements in four schemas, and selection of their rows by a condition.

A schema is recognised by its columns; further columns are allowed. docs/reference/tables.md lists them with units.
"""

from __future__ import annotations

import csv
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import SpecError, did_you_mean, documented

Row = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredPoint:
    """One measured training configuration."""

    group: str
    """Points of one group are fitted together: model × cluster."""
    workers: int
    hosts: int
    batch: float
    """Samples per worker and step."""
    step_s: float
    row: Row


@dataclass(frozen=True, kw_only=True, slots=True)
class Schema:
    """The columns of one kind of table."""

    name: str
    columns: frozenset[str]
    """Columns by which the schema is recognised."""
    doc: str


STEP_TIMES = Schema(
    name="step times by placement",
    columns=frozenset({"model", "cluster", "num_nodes", "num_replicas", "local_bsz", "step_time_s"}),
    doc="model, cluster, num_nodes, num_replicas, local_bsz (samples per worker), step_time_s",
)
THROUGHPUT = Schema(
    name="throughput by workers",
    columns=frozenset({"framework", "model", "hardware", "workers", "nodes", "batch_per_worker", "metric", "value"}),
    doc="framework, model, hardware, interconnect, strategy, workers, nodes, batch_per_worker, metric, value; rows "
    "with metric = throughput (samples per second over all workers)",
)
COLLECTIVES = Schema(
    name="collective times",
    columns=frozenset({"cluster", "network", "library", "workers", "message_bytes", "time_us"}),
    doc="cluster, network, library, workers, message_bytes, time_us",
)
LAYERS = Schema(
    name="layer trace",
    columns=frozenset({"tensor_id", "num_params", "backward_compute_us", "comm_us"}),
    doc="trace, nodes, tensor_id (in the order of the backward pass), num_params, backward_compute_us, comm_us",
)
SCHEMAS = (STEP_TIMES, THROUGHPUT, COLLECTIVES, LAYERS)


def read_table(path: Path) -> tuple[Schema, list[Row]]:
    """Read a table and recognise its schema.

    Raises:
        SpecError: The file cannot be read, or no schema has its columns.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows: list[Row] = list(reader)
            columns = set(reader.fieldnames or ())
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            f"{path}: cannot be read: {error}", hint=f"give a CSV file: {documented('reference/tables')}"
        ) from None
    for schema in SCHEMAS:
        if schema.columns <= columns:
            return schema, rows
    nearest = max(SCHEMAS, key=lambda schema: len(schema.columns & columns))
    missing = ", ".join(sorted(nearest.columns - columns))
    raise SpecError(
        f"{path}: no schema has these columns; the nearest is {nearest.name}, which also needs {missing}",
        hint=f"what each schema needs: {documented('reference/tables')}",
    )


def points_of(schema: Schema, rows: Sequence[Row]) -> list[MeasuredPoint]:
    """The measured points of a table, without rows that lack a number or have another metric."""
    if schema is STEP_TIMES:
        points = [_step_time(row) for row in rows]
    elif schema is THROUGHPUT:
        points = [_throughput(row) for row in rows]
    else:
        raise SpecError(f"a table of {schema.name} has no step times to predict", hint=documented("reference/tables"))
    return [point for point in points if point is not None and point.step_s > 0]


def _step_time(row: Row) -> MeasuredPoint | None:
    step = number(row["step_time_s"])
    if step is None:
        return None
    return MeasuredPoint(
        group=" · ".join(row[name] for name in ("model", "cluster") if row.get(name)),
        workers=int(row["num_replicas"]),
        hosts=int(row["num_nodes"]),
        batch=float(row["local_bsz"]),
        step_s=step,
        row=row,
    )


def _throughput(row: Row) -> MeasuredPoint | None:
    value, batch = number(row["value"]), number(row["batch_per_worker"])
    workers, nodes = number(row["workers"]), number(row["nodes"])
    if row["metric"] != "throughput" or not value or not batch or not workers or not nodes:
        return None
    named = ("framework", "model", "hardware", "interconnect", "strategy", "precision")
    return MeasuredPoint(
        group=" · ".join(row[name] for name in named if row.get(name)),
        workers=int(workers),
        hosts=int(nodes),
        batch=batch,
        step_s=workers * batch / value,
        row=row,
    )


def number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


_COMPARISON = re.compile(r"\s*(\w+)\s*(<=|>=|==|!=|<|>|=)\s*(\S(?:.*\S)?)\s*")
Compares = Callable[[float | str, float | str], bool]
_OPERATORS: dict[str, Compares] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
}


def matching(condition: str, columns: Sequence[str]) -> Callable[[Row], bool]:
    """A test of rows against a condition such as `num_nodes<=4`, or several joined by `and`.

    Raises:
        SpecError: A part is not a comparison, or names a column that the table does not have.
    """
    tests: list[tuple[str, Compares, str]] = []
    for part in re.split(r"\band\b", condition):
        match = _COMPARISON.fullmatch(part)
        if not match:
            raise SpecError(
                f"--fit {condition!r}: {part.strip()!r} is not a comparison", hint='write: --fit "num_nodes<=4"'
            )
        column, symbol, wanted = match.groups()
        if column not in columns:
            raise SpecError(f"--fit: the table has no column {column!r}", hint=did_you_mean(column, columns))
        tests.append((column, _OPERATORS[symbol], wanted.strip("'\"")))

    def matches(row: Row) -> bool:
        return all(_holds(row[column], compares, wanted) for column, compares, wanted in tests)

    return matches


def _holds(value: str, compares: Compares, limit: str) -> bool:
    left, right = number(value), number(limit)
    return compares(left, right) if left is not None and right is not None else compares(value, limit)
