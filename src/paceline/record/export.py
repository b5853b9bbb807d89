"""Records as tables and files for other programs: one row per run, or one row per sample.

The flat columns of a run are defined only here; CSV, Parquet, the view `runs` of DuckDB and the data frames of the
Python API all have the same ones. Knows nothing about the store.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from paceline.errors import StoreError
from paceline.plan.trial import Trial
from paceline.record.meter import meter_looks
from paceline.record.on_demand import file_of
from paceline.record.record import Record
from paceline.record.sample_files import SERIES
from paceline.record.summary import RunSummary, summarize

MAIN_TRIAL_COLUMNS = (
    "framework",
    "strategy",
    "model",
    "batch_per_worker",
    "hosts",
    "workers",
    "threads_per_worker",
)
"""The columns that identify a trial at a glance; they are repeated on every row of the table of samples."""

_PLAIN_SUMMARY = (
    "throughput",
    "step_s",
    "communication_transfer_s",
    "communication_waiting_s",
    "cpu_utilisation",
    "peak_rss_bytes",
    "peak_rss_rank_bytes",
    "first_step_s",
    "compile_s",
    "compile_in_first_step_s",
    "setup_s",
    "loss_first",
    "loss_last",
    "n_steps",
    "n_ranks",
)


def trial_columns(trial: Trial) -> dict[str, object]:
    """Returns a trial as flat columns, with knobs as `knob.<name>` and model options as `option.<name>`."""
    workload, framework, cluster, measure = trial.workload, trial.framework, trial.cluster, trial.measure
    return {
        "framework": framework.name,
        "strategy": framework.strategy,
        "strategy_class": framework.strategy_class,
        "environment": framework.environment,
        "lock": framework.lock,
        "simulated": framework.simulated,
        "model": workload.model,
        "batch_per_worker": workload.batch_per_worker,
        "batch_global": trial.batch_global,
        "scaling": workload.scaling,
        "input": workload.input,
        "loader_workers": workload.loader_workers,
        "seed": workload.seed,
        "site": cluster.site,
        "hosts": cluster.hosts,
        "workers_per_host": cluster.workers_per_host,
        "workers": trial.workers,
        "threads_per_worker": cluster.threads_per_worker,
        "device": cluster.device,
        "network": None if cluster.network is None else cluster.network.label,
        "warmup_steps": measure.warmup_steps,
        "steps": measure.steps,
        **{f"option.{name}": _scalar(value) for name, value in sorted(workload.options.items())},
        **{f"knob.{name}": _scalar(value) for name, value in sorted(framework.knobs.items())},
    }


def run_columns(record: Record) -> dict[str, object]:
    """Returns a run as one flat row: ids, trial, outcome, derived numbers and the codes of its warnings."""
    versions = [rank.framework_version for rank in record.ranks if rank.framework_version]
    return {
        "run_id": record.run_id,
        "trial_id": record.trial.id,
        "study": record.study,
        "repeat": record.repeat,
        "attempt": record.attempt,
        "machine_id": record.machine["id"],
        "started": record.started,
        "elapsed_s": record.elapsed_s,
        "outcome": record.outcome.kind.value,
        "outcome_stage": record.outcome.stage,
        "outcome_reason": record.outcome.reason,
        **trial_columns(record.trial),
        "framework_version": versions[0] if versions else None,
        "phases_by": record.phases_by,
        **_summary_columns(summarize(record)),
        "warnings": " ".join(doubt.code for doubt in record.doubts),
        "paceline": record.paceline,
    }


def runs_table(records: Sequence[Record]) -> pa.Table:
    """Returns a table with one row per run, in the given order; a column that a run lacks is null there."""
    return table_of([run_columns(record) for record in records])


def samples_table(records: Sequence[Record]) -> pa.Table:
    """Returns all samples as one table: the run, the main columns of its trial, then the raw columns."""
    tables = []
    for record in records:
        if record.samples is None:
            continue
        flat = trial_columns(record.trial)
        facts: dict[str, object] = {
            "run_id": record.run_id,
            "trial_id": record.trial.id,
            "machine_id": record.machine["id"],
            "repeat": record.repeat,
            "attempt": record.attempt,
            "phases_by": record.phases_by,
            **{name: flat[name] for name in MAIN_TRIAL_COLUMNS},
        }
        n = record.samples.num_rows
        columns = {name: pa.array([value] * n) for name, value in facts.items()}
        columns |= {name: record.samples[name] for name in record.samples.column_names}
        tables.append(pa.table(columns))
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})


def table_of(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Returns a table of rows that may have different keys; a column of mixed types becomes text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    # The phases and knobs of a later row are placed next to those of the first row, not after its warnings.
    order = {name: (_place(name, names), position) for position, name in enumerate(names)}
    return pa.table({name: _column([row.get(name) for row in rows]) for name in sorted(names, key=order.__getitem__)})


def to_csv(records: Sequence[Record]) -> str:
    """Returns CSV with a header and one row per run."""
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(runs_table(records), sink)
    return str(sink.getvalue().to_pybytes().decode())


def to_json(records: Sequence[Record], *, samples: bool = False) -> dict[str, object]:
    """Returns the complete records for `json.dumps`, each with its derived `summary`; NaN and infinity become None.

    Args:
        records: the records.
        samples: include the raw samples and layer times.
    """
    rows = []
    for record in records:
        row = record.to_json() | {"trial_id": record.trial.id, "summary": None, "series": _series(record)}
        if record.meter is not None:
            row["resources"] = {**record.resources, "samples": meter_looks(record.meter)}
        summary = summarize(record)
        if summary is not None:
            row["summary"] = _summary_json(summary)
        if samples:
            row["samples"] = None if record.samples is None else record.samples.to_pydict()
            row["layers"] = None if record.layers is None else record.layers.to_pydict()
            row["output"] = None if record.output is None else record.output.to_pydict()
        rows.append(row)
    return {"records": [_finite(row) for row in rows]}


def write_parquet(records: Sequence[Record], path: Path) -> None:
    """Writes all samples of the records to one Parquet file.

    Raises:
        StoreError: the file cannot be written.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(samples_table(records), sink, compression="zstd")
    write_bytes(sink.getvalue().to_pybytes(), path)


def write_text(text: str, path: Path) -> None:
    """Writes text to a file that the user named.

    Raises:
        StoreError: the file cannot be written.
    """
    write_bytes(text.encode(), path)


def write_bytes(content: bytes, path: Path) -> None:
    """Writes bytes to a file that the user named.

    Raises:
        StoreError: the file cannot be written; the hint says what to type.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}", hint=how_to_write(path)) from None


def make_folder(path: Path) -> None:
    """Creates a folder that the user named, with its parents.

    Raises:
        StoreError: the folder cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{path}: cannot be made: {error.strerror}", hint="name another folder") from None


def how_to_write(path: Path) -> str:
    """Returns a hint on how to make a path writable."""
    if not path.parent.exists():
        return f"make its folder first: mkdir -p {shlex.quote(str(path.parent))}"
    if path.is_dir():
        return f"it is a folder; name a file in it: {path / 'NAME'}"
    return "name another file, in a folder where you may write"


def _summary_columns(summary: RunSummary | None) -> dict[str, object]:
    if summary is None:
        return dict.fromkeys(_PLAIN_SUMMARY)
    return {
        **{name: getattr(summary, name) for name in _PLAIN_SUMMARY},
        **{f"phase.{name}_s": phase.seconds for name, phase in summary.phases.items()},
        **{f"share.{name}": phase.share for name, phase in summary.phases.items()},
        **{f"derived.{name}_s": phase.seconds for name, phase in summary.phases_derived.items()},
        "derived_by": next((phase.by for phase in summary.phases_derived.values()), None),
    }


def _series(record: Record) -> dict[str, dict[str, object]]:
    """Returns series → its rows and the checksum of its file in the store; None if the run is not in a store."""
    return {
        name: {"rows": table.num_rows, "checksum": file.checksum if (file := file_of(record, name)) else None}
        for name in SERIES
        if (table := getattr(record, name)) is not None
    }


def _summary_json(summary: RunSummary) -> dict[str, object]:
    plain = {name: getattr(summary, name) for name in summary.__dataclass_fields__ if name != "lockstep"}
    plain["phases"] = {name: phase.seconds for name, phase in summary.phases.items()}
    plain["phase_shares"] = {name: phase.share for name, phase in summary.phases.items()}
    plain["phases_derived"] = {name: asdict(phase) for name, phase in summary.phases_derived.items()}
    return plain


def _scalar(value: object) -> object:
    """Returns the value of a cell; a value with parts is written as JSON."""
    return json.dumps(value, default=str) if isinstance(value, (Mapping, list, tuple)) else value


def _place(name: str, names: Sequence[str]) -> int:
    family, dot, _ = name.partition(".")
    if not dot:
        return names.index(name)
    return next(i for i, other in enumerate(names) if other.startswith(f"{family}."))


def _column(values: list[object]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if v is None else v if isinstance(v, str) else json.dumps(v) for v in values])


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return _finite(value.item()) if hasattr(value, "item") else value
