"""One explanation a trial, from its runs and the model of its family. Joins the parts of this stage. Pure."""

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
    """A trial with all that is known of it."""

    trial: Trial
    records: tuple[Record, ...]
    """Runs that ended well."""
    setting: ModelledTrial
    spent: Spent | None
    """None where nothing tells the parts of its step: then only the model speaks."""

    @property
    def machine(self) -> str:
        """Id of the machine that ran it."""
        return str(self.records[0].machine["id"])

    @property
    def step_s(self) -> float:
        return mean_step_s(self.records)


def subjects(families: Sequence[tuple[Evidence, Calibration]], records: Sequence[Record]) -> list[Subject]:
    """Every trial of these families that was measured."""
    runs: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        if record.ok:
            runs.setdefault((record.trial.id, record.machine["id"]), []).append(record)
    found: list[Subject] = []
    for evidence, calibration in families:
        for one in evidence.trainings:
            # An imported profile stands behind the trial that it resembles: its runs are taken already.
            mine = tuple(runs.pop((one.trial.id, evidence.family.machine), ()))
            if not mine:
                continue
            spent = spent_of(mine)
            setting = ModelledTrial(calibration=calibration, conditions=one.conditions, starved=_starved(spent))
            found.append(Subject(trial=one.trial, records=mine, setting=setting, spent=spent))
    return found


def _starved(spent: Spent | None) -> float:
    """Part of computing that was waiting for a core."""
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
    """All that can be said about one trial.

    Args:
        smaller: the trial of its family with the fewest workers, if it is another one.
        experiment: makes a study file of a question and changed axes.
        yardsticks: further measures of whether the step is normal.
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
        unknown=subject.setting.calibration.unidentified,
    )


def explain_among(
    subject: Subject,
    others: Sequence[Subject],
    *,
    label: str,
    experiment: Text,
    graph: Graph | None,
    folder: Path,
) -> Explanation:
    """One trial beside the others of its study, held against the machine's peak and its own earlier runs.

    Args:
        others: all trials that were measured.
        graph: what it trains; None where that is not at hand.
        folder: of the store, where the peak of a machine is kept.
    """
    yardsticks = [
        roofline_of(subject.trial, subject.step_s, graph, read_peak(folder, subject.machine)),
        by_earlier(*before_and_after(subject.records)),
    ]
    return explain(
        subject,
        label=label,
        smaller=smallest_of(subject, others),
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
    """Cores that the ranks of one host were given, all together; emulated hosts may have to share them."""
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
    # Ranks of one host: it is the rank that is slow.
    return name if len(set(hosts.values())) > 1 else f"{name}, rank {subject.spent.slowest}"


def smallest_of(subject: Subject, others: Sequence[Subject]) -> Subject | None:
    """The trial with the fewest workers that differs from this one in its size alone; None: it is itself that one."""

    def key(one: Subject) -> tuple[object, ...]:
        workload, framework, cluster = one.trial.workload, one.trial.framework, one.trial.cluster
        batch = one.trial.batch_global if workload.scaling == "strong" else workload.batch_per_worker
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
            one.trial.measure.layers,
        )

    network = subject.trial.cluster.network
    alike = [
        one
        for one in others
        if key(one) == key(subject) and (one.trial.cluster.hosts == 1 or one.trial.cluster.network == network)
    ]
    least = min(alike, key=lambda one: one.trial.workers, default=None)
    return least if least is not None and least.trial.workers < subject.trial.workers else None
