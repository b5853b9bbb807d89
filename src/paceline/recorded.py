"""Records without their study: those of an archive, of a whole store, or of one trial by its id.

This module joins records with the capabilities of frameworks, and finds models of Paceline by their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import PacelineError
from paceline.explain.explanation import Explanation
from paceline.explain.trials import explain_among, subjects
from paceline.frameworks import load_framework
from paceline.model.fitting.families import observed
from paceline.model.fitting.fit import family_of, fit
from paceline.model.fitting.manner import manner_of
from paceline.model.fitting.observe import Manner
from paceline.model.fitting.problem import Evidence
from paceline.plan import Trial
from paceline.plan.capabilities import Capabilities
from paceline.record import MEASUREMENT, Record, last_attempts
from paceline.record.archive import read_archive
from paceline.record.reading import Reading, open_store
from paceline.workloads import MODELS, Graph, graph_of

if TYPE_CHECKING:
    from paceline.model.validation.validate import Validation


def manner(trial: Trial) -> Manner:
    """How a trial exchanges gradients and receives input, according to its framework."""
    return manner_of(trial, _capabilities(trial.framework.name))


@cache
def _capabilities(framework: str) -> Capabilities:
    # Finding plug-ins reads the metadata of every installed package, 20 ms that must not be spent for each record.
    return load_framework(framework).capabilities


def graph_by_name(trial: Trial) -> Graph | None:
    """The graph of a model in `MODELS`; None if it is no longer the graph that was trained."""
    if trial.workload.model not in MODELS:
        return None
    graph = graph_of(trial.workload.model, trial.workload.options)
    return graph if graph.hash == trial.workload.graph else None


def evidence_of_records(records: Sequence[Record]) -> list[Evidence]:
    """The evidence of each trained family; collectives and profiles are taken from the same records."""
    return observed(records, probes=records, profiles=records, graph=graph_by_name, manner=manner)


def measurements_in(place: Path) -> list[Record]:
    """Measurements of a store or of an archive.

    Raises:
        PacelineError: the place is neither.
    """
    if place.is_file():
        records = read_archive(place)
    else:
        with open_store(place) as store:
            records = store.records()
    return [record for record in last_attempts(records) if record.kind == MEASUREMENT]


def explain_trial(folder: Path, trial_id: str) -> Explanation:
    """Explain one trial of the store from the records of its family.

    Raises:
        PacelineError: no usable run of the trial is recorded.
    """
    with open_store(folder) as store:
        trials = store.trials()
    if trial_id not in trials:
        near = ", ".join(sorted(key for key in trials if key.startswith(trial_id.partition(".")[0]))[:5])
        raise PacelineError(
            f"{trial_id}: neither a study file nor a trial that is recorded in {folder}",
            hint=f"near it: {near}" if near else "list them: paceline export --format csv",
        )
    identity = family_of(trials[trial_id], "")
    family = [key for key, trial in trials.items() if family_of(trial, "") == identity]
    probes = [key for key, trial in trials.items() if trial.workload.collective is not None]
    records = [
        record for record in Reading(folder).runs([*family, *probes]) if record.ok and record.kind == MEASUREMENT
    ]
    measured = subjects([(evidence, fit(evidence)) for evidence in evidence_of_records(records)], records)
    subject = next((subject for subject in measured if subject.trial.id == trial_id), None)
    if subject is None:
        raise PacelineError(
            f"{trial_id}: no run of it ended well with numbers", hint="run it again: paceline run STUDY --retry-failed"
        )
    return explain_among(
        subject,
        measured,
        label=subject.trial.label,
        experiment=lambda _question, _axes: "",
        graph=graph_by_name(subject.trial),
        folder=folder,
    )


def split_validation(path: Path, store: str | None = None) -> Validation:
    """Fit the model to those records that a split file selects and validate it on the others.

    The split file was fixed before the model was fitted.

    Raises:
        PacelineError: the file, or a file that it names, does not exist or cannot be read.
    """
    # Imported here because SciPy's statistics take half a second to load, and only this function needs them.
    from paceline.model.validation import validate  # noqa: PLC0415
    from paceline.model.validation.split import read_split, validate_family  # noqa: PLC0415

    split = read_split(path)
    results, without = [], []
    for evidence in evidence_of_records(measurements_in(Path(store) if store else path.parent / split.records)):
        concerned = [training for training in evidence.trainings if split.concerns(training)]
        fitted = [training for training in concerned if split.fits(training)]
        held_out = [training for training in concerned if not split.fits(training)]
        if not concerned:
            continue
        if not held_out or not fitted:
            without.append(f"{evidence.family.label}: {'nothing to predict' if not held_out else 'nothing to fit on'}")
            continue
        results.append(validate_family(evidence, fitted, held_out))
    return validate.Validation(groups=tuple(results), without_rows=tuple(without))
