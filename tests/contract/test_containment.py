"""One run's trouble is its own: a broken adapter, a stuck process, another study proposed, records read elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.errors import SpecError
from paceline.frameworks.null import NULL, Null
from paceline.plan import Proposal, Trial, expand
from paceline.plan.process import Process, Topology
from paceline.record import OutcomeKind, Record
from paceline.run import Budget
from paceline.sites.local import LocalSite
from paceline.spec import read_study
from paceline.workbench import Workbench
from street import paceline, study_of, to_toml


class BrokenForTwo(Null):
    """An adapter with a defect that shows for two workers only."""

    def processes(self, trial: Trial, topology: Topology) -> list[Process]:
        if trial.workers == 2:
            raise KeyError("a defect of the adapter")
        return NULL.processes(trial, topology)


class StuckSite(LocalSite):
    """A site whose first process claims not to die."""

    def stop(self) -> list[str]:
        super().stop()
        return ["worker0 (process 1)"]


def test_defect_of_an_adapter_is_an_outcome_and_the_other_trial_runs(tmp_path: Path) -> None:
    bench = Workbench(read_study(study_of(cluster={"workers_per_host": [2, 1]}, measure={"repeats": 1})), tmp_path)
    bench.prepared = replace(bench.prepared, frameworks={"null": BrokenForTwo()})
    bench.run()
    records = {record.trial.workers: record for record in bench.snapshot().records}

    assert records[1].ok
    assert records[2].outcome.kind is OutcomeKind.FAILED
    assert "a defect of the adapter" in (records[2].outcome.reason or "")
    assert any("processes" in line for line in records[2].outcome.log_tail)


def test_process_that_will_not_die_is_a_doubt_and_loses_no_sample(tmp_path: Path) -> None:
    bench = Workbench(read_study(study_of(measure={"repeats": 2})), tmp_path)
    bench.prepared = replace(bench.prepared, site=StuckSite())
    bench.run()
    records = bench.snapshot().records

    assert [record.ok for record in records] == [True, True]
    assert all("stuck" in {doubt.code for doubt in record.doubts} for record in records)


def test_campaign_runs_the_study_that_is_proposed_and_keeps_to_its_budget(tmp_path: Path) -> None:
    study = read_study(study_of(measure={"repeats": 1}))
    other = read_study(study_of(workload={"model": "mlp"}, measure={"repeats": 1}))
    seen: list[int] = []

    def propose(records: Sequence[Record]) -> Proposal | None:
        seen.append(len(records))
        return Proposal(study=other, reason="try another model") if len(records) < 2 else None

    bench = Workbench(study, tmp_path)
    new = bench.run(propose=propose, budget=Budget(rounds=5))

    assert [record.trial.workload.model for record in new] == ["lenet5", "mlp"]
    assert seen == [1, 2]


def test_what_was_recorded_with_more_cores_can_be_read_with_fewer(tmp_path: Path) -> None:
    bench = Workbench(
        read_study(study_of({"time": "real", "compute_s": 0}, measure={"repeats": 1, "steps": 2})), tmp_path
    )
    bench.run()
    catalog = bench.prepared.catalog
    catalog = replace(catalog, site=replace(catalog.site, cores_per_host=0))
    expanded = tuple(expand(bench.prepared.study, catalog))
    bench.prepared = replace(bench.prepared, catalog=catalog, expanded=expanded)
    fewer = bench.snapshot()

    assert all(trial.missing_cores for trial in expanded)
    assert len(fewer.records) == 1
    assert fewer.comparison.rows[0].throughput is not None
    with pytest.raises(SpecError, match="cores per host"):
        fewer.plan_for()


@pytest.mark.parametrize("kind", ["hang", "memory"])
def test_what_other_limits_have_ended_is_run_again(tmp_path: Path, kind: str) -> None:
    tight = {"hang": {"time_limit": "3s"}, "memory": {"memory_limit": "60MiB"}}[kind]
    data = study_of({"fault": kind, "fault_bytes": "100MiB"}, measure={"repeats": 1, **tight})
    Workbench(read_study(data), tmp_path).run()
    same = Workbench(read_study(data), tmp_path).snapshot().plan
    wider = study_of({"fault": kind, "fault_bytes": "100MiB"}, measure={"repeats": 1, "time_limit": "7min"})

    assert len(same.runs) == 0
    assert len(Workbench(read_study(wider), tmp_path).snapshot().plan.runs) == 1


def test_study_of_which_nothing_can_run_does_not_exit_with_zero(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of(cluster={"hosts": 2})), encoding="utf-8")
    done = paceline(tmp_path, "run", "s.toml")

    assert done.returncode == 5
    assert "no trial can run here" in done.stderr


@pytest.mark.parametrize("variable", ["PACELINE_CACHE", "PACELINE_LOCK"])
def test_place_that_cannot_be_written_is_two_lines(tmp_path: Path, variable: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "s.toml").write_text(to_toml(study_of()), encoding="utf-8")
    done = paceline(tmp_path, "run", "s.toml", **{variable: str(tmp_path / "file" / "below")})

    assert done.returncode in {3, 6}, done.stderr
    assert "Traceback" not in done.stderr
    assert variable in done.stderr


def test_numbers_that_are_none_are_refused_in_the_plan(tmp_path: Path) -> None:
    text = to_toml(study_of()).replace('time = "law"', 'time = "law"\njitter = nan')
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    done = paceline(tmp_path, "plan", "s.toml")

    assert done.returncode == 2
    assert "finite number" in done.stderr


def test_store_that_was_named_is_named_in_what_to_type_next(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(to_toml(study_of(measure={"repeats": 1})), encoding="utf-8")
    done = paceline(tmp_path, "run", "s.toml", "--store", "mine")

    assert "next: paceline report s.toml --store mine" in done.stderr
