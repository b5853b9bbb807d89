"""Records whose study is not at hand: those of an archive, of a whole store, or of one trial by its id.

Joins records with what frameworks say about themselves; models of ours are found by their names.
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
    """How a trial exchanges gradients and is fed, as its framework says."""
    return manner_of(trial, _capabilities(trial.framework.name))


@cache
def _capabilities(framework: str) -> Capabilities:
    # Plug-ins are looked for in the metadata of every installed package: 20 ms that a store has no time for.
    return load_framework(framework).capabilities


def graph_by_name(trial: Trial) -> Graph | None:
    """The graph of a model of ours, if it is still the one that was trained."""
    if trial.workload.model not in MODELS:
        return None
    graph = graph_of(trial.workload.model, trial.workload.options)
    return graph if graph.hash == trial.workload.graph else None


def evidence_of_records(records: Sequence[Record]) -> list[Evidence]:
    """What records say of each family that was trained; collectives and profiles are found among them."""
    return observed(records, probes=records, profiles=records, graph=graph_by_name, manner=manner)


def measurements_in(place: Path) -> list[Record]:
    """Measurements of a store or of an archive.

    Raises:
        PacelineError: it is neither.
    """
    if place.is_file():
        records = read_archive(place)
    else:
        with open_store(place) as store:
            records = store.records()
    return [record for record in last_attempts(records) if record.kind == MEASUREMENT]


def explain_trial(folder: Path, trial_id: str) -> Explanation:
    """One trial of the store, by what is recorded of its family.

    Raises:
        PacelineError: nothing of it is recorded.
    """
    with open_store(folder) as store:
        trials = store.trials()
    if trial_id not in trials:
        near = ", ".join(sorted(key for key in trials if key.startswith(trial_id.partition(".")[0]))[:5])
        raise PacelineError(
            f"{trial_id}: neither a study file nor a trial that is recorded in {folder}",
            hint=f"near it: {near}" if near else "list them: paceline export --format csv",
        )
    wanted = family_of(trials[trial_id], "")
    family = [key for key, trial in trials.items() if family_of(trial, "") == wanted]
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
    """Our own records: the model is fitted to those that a split names and judged on the rest.

    The split is a file that was fixed before.

    Raises:
        PacelineError: the file, or what it names, is not there or cannot be read.
    """
    # Loads SciPy's statistics, half a second that every other answer can do without.
    from paceline.model.validation import validate  # noqa: PLC0415
    from paceline.model.validation.split import read_split, validate_family  # noqa: PLC0415

    split = read_split(path)
    results, without = [], []
    for evidence in evidence_of_records(measurements_in(Path(store) if store else path.parent / split.records)):
        concerned = [training for training in evidence.trainings if split.concerns(training)]
        fitted = [training for training in concerned if split.fits(training)]
        asked = [training for training in concerned if not split.fits(training)]
        if not concerned:
            continue
        if not asked or not fitted:
            without.append(f"{evidence.family.label}: {'nothing to predict' if not asked else 'nothing to fit on'}")
            continue
        results.append(validate_family(evidence, fitted, asked))
    return validate.Validation(groups=tuple(results), without_rows=tuple(without))
