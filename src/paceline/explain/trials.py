"""Explains each trial from its runs and the model of its family. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.explain.changes import Case
from paceline.explain.explanation import EfficiencyLoss, Explanation, Yardstick
from paceline.explain.findings import Text, findings_of
from paceline.explain.history import before_and_after
from paceline.explain.normal import by_earlier, by_model, roofline_of
from paceline.explain.shares import loss_between, shares_of
from paceline.explain.spent import Spent, mean_step_s, spent_of
from paceline.explain.without import ModelledTrial, ladder
from paceline.model.equations.terms import COMPUTE, CONTENTION
from paceline.model.fitting.calibration import Calibration
from paceline.model.fitting.problem import Evidence
from paceline.plan.trial import Trial
from paceline.record.peak import read_peak
from paceline.record.record import Record
from paceline.workloads.graph import Graph


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A measured trial with its runs and its model."""

    trial: Trial
    records: tuple[Record, ...]
    """The successful runs of the trial."""
    setting: ModelledTrial
    spent: Spent | None
    """The measured step by cause; None if no run tells it, so that only the model can."""

    @property
    def machine(self) -> str:
        """The id of the machine that ran the trial."""
        return str(self.records[0].machine["id"])

    @property
    def step_s(self) -> float:
        return mean_step_s(self.records)


def subjects(families: Sequence[tuple[Evidence, Calibration]], records: Sequence[Record]) -> list[Subject]:
    """Returns every measured trial of these families."""
    runs: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.ok:
            runs.setdefault((record.trial.id, record.machine["id"]), []).append(record)
    measured: list[Subject] = []
    for evidence, calibration in families:
        for training in evidence.trainings:
            # An imported profile follows the trial that it resembles, which has taken the runs already.
            trial_runs = tuple(runs.pop((training.trial.id, evidence.family.machine), ()))
            if not trial_runs:
                continue
            spent = spent_of(trial_runs)
            setting = ModelledTrial(calibration=calibration, conditions=training.conditions, starved=_starved(spent))
            measured.append(Subject(trial=training.trial, records=trial_runs, setting=setting, spent=spent))
    return measured


def _starved(spent: Spent | None) -> float:
    """Returns the fraction of computation that was spent waiting for a core."""
    if spent is None:
        return 0.0
    computing = spent.seconds[COMPUTE] + spent.seconds[CONTENTION]
    return spent.seconds[CONTENTION] / computing if computing else 0.0


def explain(
    subject: Subject,
    *,
    label: str,
    smaller: Subject | None,
    experiment: Text,
    yardsticks: Sequence[Yardstick] = (),
) -> Explanation:
    """Explains one trial.

    Args:
        subject: the trial.
        label: the name under which the trial is shown.
        smaller: the trial of its family with the fewest workers; None if it is this one.
        experiment: writes a study file from a question and changed axes.
        yardsticks: further references for whether the step is normal.
    """
    shares = shares_of(subject.spent, subject.setting)
    case = Case(
        trial=subject.trial,
        setting=subject.setting,
        cores=cores_of(subject.records),
        slow_host=_slow_host(subject),
        measured={share.cause: share.measured for share in shares if share.measured is not None},
    )
    step_s = subject.step_s
    return Explanation(
        trial=subject.trial.id,
        label=label,
        step_s=step_s,
        shares=shares,
        findings=findings_of(shares, subject.spent, case, experiment, [record.run_id for record in subject.records]),
        ladder=ladder(subject.setting, step_s),
        loss=_loss(smaller, subject),
        yardsticks=(by_model(subject.setting, step_s), *yardsticks),
        simulated=subject.trial.framework.simulated,
        true_scale=subject.trial.true_scale,
        unknown=subject.setting.calibration.unidentified,
    )


def explain_among(
    subject: Subject,
    measured: Sequence[Subject],
    *,
    label: str,
    experiment: Text,
    graph: Graph | None,
    folder: Path,
) -> Explanation:
    """Explains one trial among those of its study, and compares it with the machine's peak and its earlier runs.

    Args:
        subject: the trial.
        measured: all measured trials, this one included.
        label: the name under which the trial is shown.
        experiment: writes a study file from a question and changed axes.
        graph: the graph that is trained; None if it is not available.
        folder: the folder of the store, which holds the peak of each machine.
    """
    yardsticks = [
        roofline_of(subject.trial, subject.step_s, graph, read_peak(folder, subject.machine)),
        by_earlier(*before_and_after(subject.records)),
    ]
    return explain(
        subject,
        label=label,
        smaller=smallest_of(subject, measured),
        experiment=experiment,
        yardsticks=[yardstick for yardstick in yardsticks if yardstick is not None],
    )


def _loss(smaller: Subject | None, subject: Subject) -> EfficiencyLoss | None:
    if smaller is None or smaller.spent is None or subject.spent is None:
        return None
    return loss_between(
        (smaller.spent, smaller.setting, smaller.trial.workers, float(smaller.trial.workload.batch_per_worker)),
        (subject.spent, subject.setting, subject.trial.workers, float(subject.trial.workload.batch_per_worker)),
    )


def cores_of(records: Sequence[Record]) -> int | None:
    """Returns the number of cores that the ranks of one host share; emulated hosts share those of the machine."""
    hosts: dict[str, set[int]] = {}
    for rank in records[0].ranks if records else ():
        hosts.setdefault(rank.host, set()).update(rank.cores)
    if hosts and records[0].pace.emulated:
        return max(1, len(set.union(*hosts.values())) // len(hosts))
    return max((len(cores) for cores in hosts.values()), default=0) or None


def _slow_host(subject: Subject) -> str | None:
    if subject.spent is None or subject.spent.slowest is None or not subject.records:
        return None
    hosts: Mapping[int, str] = {rank.rank: rank.host for rank in subject.records[0].ranks}
    name = hosts.get(subject.spent.slowest)
    # If all ranks are on one host, the slow rank is named too.
    return name if len(set(hosts.values())) > 1 else f"{name}, rank {subject.spent.slowest}"


def smallest_of(subject: Subject, measured: Sequence[Subject]) -> Subject | None:
    """Returns the trial with the fewest workers that differs from this one in size only; None if it is this one."""

    def key(sized: Subject) -> tuple[object, ...]:
        workload, framework, cluster = sized.trial.workload, sized.trial.framework, sized.trial.cluster
        batch = sized.trial.batch_global if workload.scaling == "strong" else workload.batch_per_worker
        return (
            workload.graph,
            batch,
            workload.input,
            workload.loader_workers,
            framework.name,
            repr(sorted(framework.knobs.items(), key=str)),
            cluster.threads_per_worker,
            cluster.device,
            cluster.site,
            repr(sorted(cluster.options.items(), key=str)),
            sized.trial.measure.layers,
        )

    network = subject.trial.cluster.network
    alike = [
        candidate
        for candidate in measured
        if key(candidate) == key(subject)
        and (candidate.trial.cluster.hosts == 1 or candidate.trial.cluster.network == network)
    ]
    smallest = min(alike, key=lambda candidate: candidate.trial.workers, default=None)
    return smallest if smallest is not None and smallest.trial.workers < subject.trial.workers else None
