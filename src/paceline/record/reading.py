"""The runs that were read from one store; each sample file is read at most once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from paceline.errors import PacelineError
from paceline.plan.trial import Trial
from paceline.record.attempt import last_attempts
from paceline.record.record import Record
from paceline.record.store import Store
from paceline.record.stored_json import dump


class Reading:
    """The runs of one store, kept in memory once they were read. A store that does not exist counts as empty."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs: dict[str, list[Record]] = {}
        """Trial id → all its runs, with their samples."""

    def runs(self, trial_ids: Sequence[str]) -> list[Record]:
        """Returns the last attempt at each repeat of these trials, with samples, in the order in which they started."""
        unread = [trial for trial in dict.fromkeys(trial_ids) if trial not in self._runs]
        if unread:
            self._runs |= {trial: [] for trial in unread}
            if Store.exists(self.folder):
                with Store.open(self.folder) as store:
                    for record in store.records(trial_ids=unread):
                        self._runs[record.trial.id].append(record)
        return last_attempts(record for trial in dict.fromkeys(trial_ids) for record in self._runs[trial])

    def trials(self, *, study: str | None = None) -> list[Trial]:
        """Returns all trials of the store, or those with a run for a study of this name."""
        if not Store.exists(self.folder):
            return []
        with Store.open(self.folder) as store:
            return list(store.trials(study).values())

    def without(self, trial_id: str) -> Reading:
        """Returns the same store without the runs of one trial."""
        rest = Reading(self.folder)
        rest._runs = {**self._runs, trial_id: []}
        return rest

    def add(self, records: Iterable[Record]) -> None:
        """Adds runs that were stored since, so that their samples need not be read."""
        for record in records:
            if record.trial.id in self._runs:
                self._runs[record.trial.id].append(_as_stored(record))


def _as_stored(record: Record) -> Record:
    """Returns the record as the store would return it, with facts in the types of JSON."""
    facts = Record.from_json(json.loads(dump(record.to_json())))
    return replace(facts, samples=record.samples, layers=record.layers, meter=record.meter)


def open_store(folder: Path) -> Store:
    """Opens a store that must exist.

    Raises:
        PacelineError: there is no store in the folder.
    """
    if not Store.exists(folder):
        raise PacelineError(
            f"{folder}: no store here",
            hint="record something first: paceline run STUDY   or name it: --store DIR",
        )
    return Store.open(folder, create=False)
