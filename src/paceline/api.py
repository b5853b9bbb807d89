"""The small Python API for notebooks: load a study, run it, look at the records as a table, fit a model, predict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from paceline.folders import store_folder
from paceline.record import Record, last_attempts
from paceline.record.export import runs_table, samples_table
from paceline.record.reading import open_store
from paceline.snapshot import Snapshot
from paceline.spec import Study, load_study
from paceline.workbench import Watcher, Workbench, adaptive_repeats

if TYPE_CHECKING:
    import pandas as pd

    from paceline.model.fitting.calibration import Calibration
    from paceline.model.forecast.predict import Prediction

__all__ = ["Records", "Study", "fit", "load_study", "predict", "records", "run_study"]


class Records(Sequence[Record]):
    """A sequence of records that can be turned into tables."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = list(records)

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> Records: ...
    def __getitem__(self, index: int | slice) -> Record | Records:
        return Records(self._records[index]) if isinstance(index, slice) else self._records[index]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def __repr__(self) -> str:
        return f"<{len(self)} records of {len({record.trial.id for record in self})} trials>"

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per run: what it was, how it ended, and the numbers derived from it."""
        frame: pd.DataFrame = runs_table(self._records).to_pandas()
        return frame

    def samples_to_pandas(self) -> pd.DataFrame:
        """Return one row per rank and step: the raw samples."""
        frame: pd.DataFrame = samples_table(self._records).to_pandas()
        return frame


def run_study(
    study: Study | str | Path,
    *,
    store: str | Path | None = None,
    again: bool = False,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
) -> Records:
    """Run what is not recorded yet, and return all records of the study, old and new.

    Args:
        study: A study, or the path of a study file.
        store: The folder that keeps records; by default the one that the commands use.
        again: Add repeats to those that are recorded.
        retry_failed: Run again what failed.
        watcher: Is told about every run before it starts and after it ends.
    """
    if not isinstance(study, Study):
        study = load_study(study)
    bench = Workbench(study, store_folder(store))
    bench.run(watcher, again=again, retry_failed=retry_failed, propose=adaptive_repeats(bench))
    return Records(bench.snapshot().records)


def records(study: Study | str | Path | None = None, *, store: str | Path | None = None) -> Records:
    """Return what is recorded about one study, or in the whole store."""
    folder = store_folder(store)
    with open_store(folder) as opened:
        if study is None:
            return Records(last_attempts(opened.records()))
    if not isinstance(study, Study):
        study = load_study(study)
    return Records(Snapshot.of(study, folder).records)


def fit(study: Study | str | Path, *, store: str | Path | None = None) -> list[Calibration]:
    """Fit the performance model of each family (framework, strategy, model) to what is recorded and imported.

    This runs nothing. `paceline calibrate` measures what the model needs besides the study.
    """
    from paceline.campaigns import keep_models  # noqa: PLC0415  SciPy takes a second to load

    if not isinstance(study, Study):
        study = load_study(study)
    return keep_models(Snapshot.of(study, store_folder(store)))


def predict(
    calibration: Calibration,
    *,
    workers: int,
    workers_per_host: int = 1,
    batch: float | None = None,
    bandwidth: float | None = None,
    latency_s: float | None = None,
    what_if: str = "",
) -> Prediction:
    """Predict how long a step of a configuration that was never run takes, with 90 % intervals.

    Args:
        calibration: One of those that `fit` returns.
        workers: Workers on all hosts.
        workers_per_host: Workers on each host.
        batch: Samples per worker and step; by default the largest that was run.
        bandwidth: Bytes per second of each host's link; by default as it was.
        latency_s: One-way latency in addition to what the link has anyway.
        what_if: Changes as `paceline predict --what-if` takes them, such as "bandwidth=x4,compression=fp16".
    """
    from paceline.model.forecast import predict as model  # noqa: PLC0415  loaded on use, as above
    from paceline.model.forecast.what_if import changed, parse_changes  # noqa: PLC0415

    conditions = model.conditions_for(
        calibration,
        workers=workers,
        workers_per_host=workers_per_host,
        batch=batch,
        bandwidth=bandwidth,
        latency_s=latency_s,
    )
    return model.predict(*changed(calibration, conditions, parse_changes(what_if) if what_if else []))
