"""Explanations joined with the rest: records of a store, the models of their families, and what the machine can do.

Holds no logic of the stage; the command line, the report and the Python API sit on it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from paceline.compare import Comparison
from paceline.errors import PacelineError
from paceline.explain.experiment import experiment_for
from paceline.explain.explanation import Explanation, Yardstick
from paceline.explain.findings import Text
from paceline.explain.gap import Gap, Side, gap_between, layer_times
from paceline.explain.normal import by_earlier, by_roofline
from paceline.explain.regression import Moment
from paceline.explain.trials import Subject, explain, smallest_of, subjects
from paceline.model.fitting.fit import family_of, fit
from paceline.model.fitting.observe import dilation_of
from paceline.modelbench import companion_records, evidence_of_records, families, graph_by_name
from paceline.plan import Trial
from paceline.record import MEASUREMENT, Record, summarize
from paceline.record.peak import read_peak
from paceline.stats import Verdict
from paceline.workbench import Workbench, last_attempts, open_store
from paceline.workloads import Graph
from paceline.workloads.cost import cost

PASSES_OVER_MEMORY = 4
"""An output is written and read in the forward pass, and its gradient likewise in the backward pass."""


def explain_study(
    bench: Workbench, labels: Mapping[str, str], only: Collection[str] | None = None
) -> list[Explanation]:
    """Every trial of the study that was measured, or some of them; families of which none is wanted are not fitted.

    Args:
        labels: trial id → what it is called beside the others.
        only: ids of the trials that are wanted; None: all.
    """
    records = [record for record in bench.records() if record.ok]
    if only is not None:
        families_of = {record.trial.id: family_of(record.trial, "") for record in records}
        wanted_families = [family for trial, family in families_of.items() if trial in only]
        same = {trial for trial, family in families_of.items() if family in wanted_families}
        records = [record for record in records if record.trial.id in same]

    def graph(trial: Trial) -> Graph | None:
        workload = bench.workload(trial.workload.model, trial.workload.options)
        return workload if isinstance(workload, Graph) else None

    found = subjects(families(bench, records), records)
    catalog = bench.catalog()
    return [
        _explained(
            one,
            found,
            bench.folder,
            labels.get(one.trial.id, one.trial.label),
            experiment_for(bench.study, one.trial, catalog),
            graph,
        )
        for one in found
        if only is None or one.trial.id in only
    ]


def gaps_of(bench: Workbench, comparison: Comparison) -> list[Gap]:
    """For every pair of rows that are really different: why."""
    records = [record for record in bench.records() if record.ok]
    found = {one.trial.id: one for one in subjects(families(bench, records), records)}
    _, profiles = companion_records(bench)
    gaps = []
    for pair in comparison.verdicts:
        if pair.verdict != Verdict.DIFFERENT.words:
            continue
        sides = [_side(found.get(row.trial), row.label, profiles) for row in map(comparison.row, (pair.b, pair.a))]
        if sides[0] is not None and sides[1] is not None:
            gaps.append(gap_between(sides[0], sides[1], pair.factor.differing if pair.factor else ()))
    return [gap for gap in gaps if gap is not None]


def _side(subject: Subject | None, label: str, profiles: Sequence[Record]) -> Side | None:
    if subject is None or subject.spent is None:
        return None
    trial = subject.trial
    mine = [
        record
        for record in profiles
        if (record.trial.workload.graph, record.trial.framework.name) == (trial.workload.graph, trial.framework.name)
        and record.trial.workload.batch_per_worker == trial.workload.batch_per_worker
    ]
    return Side(label=label, spent=subject.spent, setting=subject.setting, layers=layer_times(mine))


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
        same = [key for key, trial in trials.items() if family_of(trial, "") == wanted]
        probes = [key for key, trial in trials.items() if trial.workload.collective is not None]
        records = last_attempts(store.records(trial_ids=[*same, *probes]))
    records = [record for record in records if record.ok and record.kind == MEASUREMENT]
    found = subjects([(one, fit(one)) for one in evidence_of_records(records) if one.trainings], records)
    mine = next((one for one in found if one.trial.id == trial_id), None)
    if mine is None:
        raise PacelineError(
            f"{trial_id}: no run of it ended well with numbers", hint="run it again: paceline run STUDY --retry-failed"
        )
    return _explained(mine, found, folder, mine.trial.label, lambda _question, _axes: "", graph_by_name)


def _explained(
    subject: Subject,
    others: Sequence[Subject],
    folder: Path,
    label: str,
    experiment: Text,
    graph: Callable[[Trial], Graph | None],
) -> Explanation:
    found = [_roofline(subject, folder, graph), by_earlier(*_before_and_after(subject))]
    yardsticks: list[Yardstick] = [one for one in found if one is not None]
    return explain(
        subject, label=label, smaller=smallest_of(subject, others), experiment=experiment, yardsticks=yardsticks
    )


def _roofline(subject: Subject, folder: Path, graph: Callable[[Trial], Graph | None]) -> Yardstick | None:
    trial = subject.trial
    peak = read_peak(folder, subject.records[0].machine["id"]) if subject.records else None
    if peak is None or trial.framework.simulated or trial.cluster.device != "cpu" or (known := graph(trial)) is None:
        return None
    needed, batch = cost(known), trial.workload.batch_per_worker
    share = float(trial.cluster.options.get("core_share") or 1.0)
    return by_roofline(
        subject.step_s,
        flops=(needed.forward_flops + needed.backward_flops) * batch,
        moved_bytes=PASSES_OVER_MEMORY * needed.activation_bytes * batch,
        peak=peak,
        cores=trial.cluster.threads_per_worker * share,
    )


def _before_and_after(subject: Subject) -> tuple[list[float], list[float]]:
    """Steps of the runs of the last state of tool and environment, and those of all earlier ones, on its machine."""
    runs = sorted(subject.records, key=lambda record: record.started)
    here = [record for record in runs if record.machine["id"] == runs[-1].machine["id"]]
    last = _versions(here[-1])
    steps = [(_versions(record) == last, _step_s(record)) for record in here]
    return [step for same, step in steps if same], [step for same, step in steps if not same]


def _step_s(record: Record) -> float:
    summary = summarize(record)
    if summary is None:
        raise ValueError(f"{record.run_id}: no step was measured")
    return summary.step_s / dilation_of(record.trial)


def _versions(record: Record) -> dict[str, str]:
    """What may make the same trial faster or slower."""
    return {
        "paceline": record.paceline,
        "environment": str(record.environment.get("fingerprint", "")),
        "worker": str(record.inputs.get("worker", "")),
        "kernel": str(record.machine.get("kernel", "")),
    }


def history(bench: Workbench) -> dict[str, list[Moment]]:
    """Trial and machine → all runs that ended well, in time."""
    found: dict[str, list[Moment]] = {}
    for record in bench.records():
        if record.ok and summarize(record) is not None:
            key = f"{record.trial.id}@{record.machine['id']}"
            moment = Moment(
                started=record.started, step_s=_step_s(record), run=record.run_id, versions=_versions(record)
            )
            found.setdefault(key, []).append(moment)
    return found
