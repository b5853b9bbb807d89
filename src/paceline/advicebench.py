"""Recommendations joined with the rest: records and calibrations of a study in, advice out; and runs that try it.

Holds no logic of a recommendation; the command line and programs under benchmarks/ sit on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.compare import compare, gather
from paceline.errors import PacelineError
from paceline.explain.finding import Finding, Range
from paceline.explainbench import explain_study
from paceline.model.fitting.calibration import Calibration, write_calibrations
from paceline.model.fitting.kept import calibrations_path, kept_calibrations
from paceline.modelbench import fitted
from paceline.plan import Proposal, expand
from paceline.recommend.advise import advice_of, choices_of
from paceline.recommend.candidates import Known, measured
from paceline.recommend.experiment import experiment, name_of_tries
from paceline.recommend.objective import Wish
from paceline.recommend.recommendation import Advice
from paceline.recommend.search import Survey, survey, to_try
from paceline.recommend.tried import Tried, outcomes
from paceline.record import Record
from paceline.run import Budget
from paceline.spec import Study, parse_study
from paceline.workbench import Watcher, Workbench

Findings = Mapping[str, Sequence[Finding]]


def records_of(bench: Workbench) -> list[Record]:
    """What is recorded of a study's trials, and of those that were tried for it."""
    return bench.records(run_for=name_of_tries(bench.study.name))


def kept(bench: Workbench) -> list[Calibration]:
    """Calibrations of a study; none before anything was calibrated.

    Raises:
        PacelineError: they are there and cannot be read.
    """
    if not calibrations_path(bench.folder, bench.study.name).exists():
        return []
    return kept_calibrations(bench.folder, bench.study.name)


def known_of(bench: Workbench, records: Sequence[Record], calibrations: Sequence[Calibration]) -> Known:
    """Everything that a recommendation rests on."""
    catalog = bench.catalog()
    expanded = expand(bench.study, catalog, to_run=False)
    own = {one.trial.id: one.trial for one in expanded}
    more = {record.trial.id: record.trial for record in records if record.trial.id not in own}
    trials = [*own.values(), *more.values()]
    fairness = bench.fairness(records, list(more.values()))
    comparison = compare(
        records,
        trials=trials,
        skipped={one.trial.id: one.refusal for one in expanded if one.refusal},
        fairness=fairness,
    )
    return Known(
        study=bench.study,
        comparison=comparison,
        runs=tuple(gather(records, trials)),
        calibrations=tuple(calibrations),
        fairness=fairness,
        catalog=catalog,
        tries=frozenset(more),
    )


def recorded(bench: Workbench) -> list[Record]:
    """As `records_of`, and there is something.

    Raises:
        PacelineError: nothing is recorded, or the study trains nothing.
    """
    if bench.study.of_collectives:
        raise PacelineError(
            f"{bench.study.source}: measures collectives and trains nothing",
            hint="recommend for a study with a model: paceline recommend STUDY",
        )
    found = records_of(bench)
    if not found:
        raise PacelineError(
            f"{bench.study.source}: nothing is recorded yet in {bench.folder}",
            hint="measure it: paceline calibrate STUDY",
        )
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Advice, and what became of what was tried for it."""

    advice: Advice
    tried: tuple[Tried, ...] = ()


def findings_of(bench: Workbench) -> Findings:
    """Trial id → what holds it back."""
    return {one.trial: one.findings for one in explain_study(bench, {})}


def recommend(bench: Workbench, wish: Wish, findings: Findings | None = None) -> Answer:
    """Advice from what is recorded and calibrated.

    Args:
        findings: what is known to hold trials back; None: found out here, of all trials.

    Raises:
        PacelineError: nothing is recorded, or a name in the wish is not there.
    """
    known = known_of(bench, recorded(bench), kept(bench))
    return Answer(advice=advice_of(survey(known, wish), known, wish, findings or findings_of(bench)))


def try_out(bench: Workbench, wish: Wish, watcher: Watcher, budget: Budget) -> Answer:
    """Run what would settle the recommendation, as long as something would and the budget lasts; then advise again.

    The model learns from these runs too, and is kept.

    Raises:
        PacelineError: as `recommend`.
    """
    predicted: dict[str, tuple[str, Range]] = {}

    def propose(_records: Sequence[Record]) -> Proposal | None:
        known, found = _look(bench, wish, again=bool(predicted))
        trials, _ = to_try(found, known)
        if not trials:
            return None
        wanted = {trial.id for trial in trials}
        chosen = [one for one in found.ranked if one.trial.id in wanted]
        labels = [choice.label for choice in choices_of([one.trial for one in chosen], known.catalog)]
        for one, label in zip(chosen, labels, strict=True):
            predicted[one.identity] = (label, one.throughput)
        study = _study(bench, experiment(known.study, trials, known.catalog))
        return Proposal(study=study, reason=f"trying what the model says is best: {'; '.join(labels)}")

    if (first := propose(())) is not None:
        watcher.say(first.reason)
        Workbench(first.study, bench.folder, proving=bench.proving).run(watcher, propose=propose, budget=budget)
    known, found = _look(bench, wish, again=bool(predicted))
    if predicted:
        write_calibrations(known.calibrations, calibrations_path(bench.folder, bench.study.name))
    rows, _ = measured(known)
    return Answer(advice=advice_of(found, known, wish, findings_of(bench)), tried=tuple(outcomes(predicted, rows)))


def _look(bench: Workbench, wish: Wish, *, again: bool) -> tuple[Known, Survey]:
    """What can be said now; again: after something was tried, from which the model learns too."""
    records = recorded(bench)
    known = known_of(bench, records, fitted(bench, records) if again else kept(bench))
    return known, survey(known, wish)


def _study(bench: Workbench, text: str) -> Study:
    """The study of a text of ours; files that it names lie beside the user's."""
    return parse_study(text, source=bench.study.source)
