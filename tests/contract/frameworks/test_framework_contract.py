"""One contract for every framework, through the whole street with real processes, by its own capabilities.

`make test` holds null and PyTorch to it, `make test-frameworks` all of them.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dropout_graph
from dropout_graph import UNITS
from framework_contract import Configuration, configurations
from paceline.compare import Proof
from paceline.environments import load_environment
from paceline.frameworks import FRAMEWORKS, load_framework
from paceline.record import OutcomeKind, Record
from paceline.run.events import read_events
from paceline.sites.lab.site import LabSite
from paceline.spec import Study, read_study
from paceline.workbench import Workbench
from paceline.workloads import graph_of
from paceline.workloads.weights import write_initial_weights

QUICK = ("null", "torch", "reference")
"""Frameworks of `make test`; the others are marked."""
WORKLOADS: dict[str, dict[str, Any]] = {
    "mlp": {},
    "lenet5": {},
    "resnet20": {"image_size": 16},
    "googlenet": {"image_size": 64, "num_classes": 10},
    "lstm": {"sequence_length": 8, "hidden": 32, "embedding": 32},
    "transformer": {"sequence_length": 16, "hidden": 32, "vocabulary": 100},
}
"""Small forms of models that together have every kind of layer."""
FACTS = ("threads", "layout", "compiled", "precision", "wrapped", "dropout", "blas")
PATIENCE_S = 300.0
CERTAIN = 5.0
"""Standard deviations that a right random number never strays; seeds are fixed, so what passes once passes always."""
ALL = configurations()
LAB = LabSite().state()


def cases(check: str, *, trains: bool = False, of: Any = None) -> list[object]:
    """Parameters of a check: every framework it concerns, or every (framework, case)."""
    found = []
    for configuration in ALL:
        framework = load_framework(configuration.framework)
        if configuration.gap("*") or (trains and not framework.capabilities.trains):
            continue
        found += [configuration.param(check, case, quick=QUICK) for case in (of(framework) if of else [""])]
    return found


def study(name: str, model: str = "mlp", **changes: dict[str, Any]) -> Study:
    data: dict[str, Any] = {
        "study": {"name": "contract", "question": "Does it keep the contract?"},
        "workload": {"model": model, "batch_per_worker": 4, model: dict(WORKLOADS.get(model, {}))},
        "framework": {"name": name},
        "cluster": {"workers_per_host": 1, "threads_per_worker": 1, "oversubscribe": True},
        "measure": {"warmup_steps": 2, "steps": 3, "repeats": 1},
    }
    for section, values in changes.items():
        data[section] |= values
    return read_study(data)


def bench_for(wanted: Study, folder: Path, *, proving: bool = False) -> Workbench:
    """Its workbench; skips the test where the framework's environment is not there."""
    bench = Workbench(wanted, folder, proving=proving)
    for environment in bench.prepared.environments.values():
        state = environment.state()
        if state.state != "ready":
            pytest.skip(f"environment {environment.name} is {state.state}: {state.reason}; {state.fix}")
    return bench


def prove(wanted: Study, folder: Path) -> Proof:
    bench = bench_for(wanted, folder, proving=True)
    bench.run(only_proof=True)
    (proof,) = bench.snapshot().fairness.proofs.values()
    return proof


def test_every_framework_is_under_the_contract_once():
    # A library that only exchanges has a contract of its own: tests/integration/mpi.
    computing = [name for name in FRAMEWORKS if load_framework(name).capabilities.workloads != {"collective"}]
    assert sorted(configuration.framework for configuration in ALL) == sorted(computing)
    assert all(isinstance(one, Configuration) for one in ALL)


@pytest.mark.parametrize(("name", "model"), cases("agrees", trains=True, of=lambda _framework: WORKLOADS))
def test_it_computes_what_the_graph_says(name: str, model: str, proofs: Path):
    proof = prove(study(name, model), proofs)

    assert proof.verdict == "agrees", proof


def strategies_of(framework: Any) -> Iterator[str]:
    return iter(framework.capabilities.strategies)


@pytest.mark.parametrize(("name", "strategy"), cases("strategy", trains=True, of=strategies_of))
def test_every_strategy_keeps_the_promise_of_its_class(name: str, strategy: str, proofs: Path):
    known = load_framework(name).capabilities.strategies[strategy]
    cluster = {"workers_per_host": known.max_workers or 2}
    refusals = {}
    # With batch norm first, because there the batch that a worker sees matters.
    for model in ("resnet20", "transformer"):
        wanted = study(name, model, framework={"strategy": strategy}, cluster=cluster)
        skipped = bench_for(wanted, proofs).snapshot().plan.skipped
        if not skipped:
            break
        refusals[model] = skipped[0].reason
    else:
        pytest.fail(f"no workload can use it: {refusals}")

    proof = prove(wanted, proofs)

    assert proof.verdict == "agrees", proof
    assert proof.workers == cluster["workers_per_host"]


def approximations_of(framework: Any) -> Iterator[str]:
    """Every single choice that gives exactness away, as "knob=value"."""
    able = framework.capabilities
    defaults = {name: known.default for name, known in able.knobs.items()}
    for knob, known in able.knobs.items():
        for value in known.choices:
            if able.class_of(able.data_parallel, {**defaults, knob: value}) == "approximate":
                yield f"{knob}={value}"


@pytest.mark.parametrize(("name", "choice"), cases("approximation", trains=True, of=approximations_of))
def test_a_choice_that_gives_exactness_away_still_learns_and_says_how_far_it_strays(
    name: str, choice: str, proofs: Path
):
    knob, value = choice.split("=")
    wanted = study(name, framework={name: {knob: value}}, cluster={"workers_per_host": 2})

    proof = prove(wanted, proofs)

    assert (proof.verdict, proof.strategy_class) == ("agrees", "approximate"), proof
    assert strays(proof) > 0


def strays(proof: Proof) -> float:
    """How far the gradient of step 0 or, where the first steps are exact, an exchange later is from the true one."""
    (distance,) = (one.distance for one in proof.distances if one.what == "gradient")
    lost = [float(line.split()[2]) for line in proof.told if line.startswith("compression loses")]
    return max([distance or 0.0, *lost])


@pytest.mark.parametrize("name", cases("record"))
def test_a_measured_run_of_two_workers_is_a_full_record(name: str, tmp_path: Path):
    framework = load_framework(name)
    bench = bench_for(study(name, cluster={"workers_per_host": 2}), tmp_path)
    (record,) = bench.run()

    assert record.ok, record.outcome
    assert [rank.rank for rank in record.ranks] == list(range(record.trial.ranks))
    assert record.samples is not None
    assert record.samples["kind"].to_pylist()[:5] == ["first", "warmup", "measured", "measured", "measured"]
    columns = [column for column in record.samples.column_names if column.startswith("phase.")]
    assert columns == [f"phase.{phase}" for phase in framework.capabilities.phases]
    assert not {doubt.code for doubt in record.doubts if doubt.code.startswith("impossible")}
    if framework.capabilities.trains:
        assert_trained(record)


@pytest.mark.skipif(LAB.state != "ready", reason=f"site lab: {LAB.reason}; {LAB.fix}")
@pytest.mark.parametrize("name", cases("hosts", trains=True))
def test_two_hosts_with_addresses_of_their_own_train_together(name: str, tmp_path: Path):
    """Libraries find their peers by interface, address or host name: what works on loopback may not here."""
    cluster = {"site": "lab", "hosts": 2, "network": "1GbE"}
    (record,) = bench_for(study(name, cluster=cluster), tmp_path).run()

    assert record.ok, record.outcome
    assert [rank.host for rank in record.ranks] == ["lab1", "lab2"]
    sent = record.resources["network"]["sent_bytes"]
    assert sent > record.inputs["gradient_bytes"] * record.samples.num_rows / 2


def assert_trained(record: Record) -> None:
    graph = graph_of(record.trial.workload.model, record.trial.workload.options)
    assert {rank.parameters for rank in record.ranks} == {graph.num_parameters}
    assert all(math.isfinite(loss) for loss in record.samples["loss"].to_pylist())
    for rank in record.ranks:
        assert set(FACTS) <= rank.facts.keys()
        assert rank.facts["threads"] == record.trial.cluster.threads_per_worker
    environment = load_environment(record.trial.framework.environment)
    assert {rank.framework_version for rank in record.ranks} == {environment.state().version}
    if record.trial.framework.strategy_class == "exact":
        assert len({rank.facts["weights_sha256"] for rank in record.ranks}) == 1


@pytest.mark.parametrize("name", cases("dropout", trains=True))
def test_dropout_drops(name: str, tmp_path: Path):
    bench = bench_for(study(name, workload={"mlp": {"dropout": [0.0, 0.5]}}), tmp_path)
    without, dropped = bench.run()

    assert without.ok, without.outcome
    assert dropped.ok, dropped.outcome
    assert without.samples["loss"][0].as_py() != dropped.samples["loss"][0].as_py()
    assert without.ranks[0].facts["dropout"] is None
    assert dropped.ranks[0].facts["dropout"]


@pytest.mark.parametrize("name", cases("dropout-rate", trains=True))
def test_dropout_drops_its_rate_of_the_units_and_scales_what_it_keeps(name: str, tmp_path: Path):
    """A proof runs without dropout, so nothing else would show a wrong one."""
    model, rates = dropout_graph.__file__, [0.2, 0.5]
    of_model = {"batch_per_worker": 1, model: {"rate": rates}}
    wanted = study(name, model, workload=of_model, measure={"warmup_steps": 2, "steps": 38})
    records = bench_for(wanted, tmp_path).run()

    assert [record.trial.workload.options["rate"] for record in records] == rates
    for rate, record in zip(rates, records, strict=True):
        assert record.ok, record.outcome
        sums = kept_sums(record, tmp_path)
        # What is kept is scaled by 1/(1 - rate): the sum times (1 - rate) is a number of units.
        kept = np.round(sums * (1 - rate))
        np.testing.assert_allclose(sums * (1 - rate), kept, atol=0.05)
        # Each unit by itself: not all of a sample at once, nor the same units in every step.
        spread = np.sqrt(UNITS * rate * (1 - rate))
        assert (abs(kept - UNITS * (1 - rate)) < CERTAIN * spread).all(), kept
        assert len(set(kept)) > 1
        total = len(kept) * UNITS
        assert abs(kept.sum() - total * (1 - rate)) < CERTAIN * np.sqrt(total * rate * (1 - rate))


def kept_sums(record: Record, folder: Path) -> np.ndarray:
    """At each step, the sum over units of what dropout has made of a 1, from the loss of one sample."""
    assert record.samples is not None
    weights = write_initial_weights(dropout_graph.graph(), record.trial.workload.seed, folder / "weights")
    high, low = np.fromfile(weights.path, dtype="<f4")[-2:].astype(np.float64)
    losses = np.array(record.samples["loss"].to_pylist(), dtype=np.float64)
    # loss = ln(1 + e^∓d), with the sign of the target; d = (high - low) × sum / UNITS, and no sum is negative.
    return np.abs(np.log(np.expm1(losses))) / abs(high - low) * UNITS


def pipelines_of(framework: Any) -> Iterator[str]:
    """ "pipeline" where the framework has one."""
    return iter({"pipeline"} & framework.capabilities.inputs)


@pytest.mark.parametrize(("name", "feed"), cases("pipeline", trains=True, of=pipelines_of))
def test_an_input_pipeline_deals_the_samples_of_resident_input_and_moves_images(name: str, feed: str, tmp_path: Path):
    inputs = {"input": ["resident", feed], "loader_workers": [0, 2]}
    for model, same in (("mlp", True), ("lenet5", False)):
        # 64 samples in the file: two workers with batches of 10 wrap within a batch.
        wanted = study(
            name,
            model,
            workload={"batch_per_worker": 10, **inputs},
            cluster={"workers_per_host": 2},
            measure={"steps": 6},
        )
        records = bench_for(wanted, tmp_path / model).run()

        assert [record.trial.workload.loader_workers for record in records] == [0, 0, 2]
        assert all(record.ok for record in records), [record.outcome for record in records]
        resident, *pipelines = ([row["loss"] for row in record.samples.to_pylist()] for record in records)
        for losses in pipelines:
            assert (losses == pytest.approx(resident, rel=1e-4)) is same


@pytest.mark.parametrize("name", cases("killed-rank"))
def test_a_rank_that_is_killed_ends_the_run_and_is_named(name: str, tmp_path: Path):
    measure = {"steps": 1_000_000, "time_limit": f"{PATIENCE_S:g}s"}
    bench = bench_for(study(name, cluster={"workers_per_host": 2}, measure=measure), tmp_path)
    killer = threading.Thread(target=kill_when_stepping, args=(tmp_path, 1), daemon=True)
    killer.start()
    (record,) = bench.run()

    assert record.outcome.kind is OutcomeKind.FAILED, record.outcome
    assert "signal 9" in str(record.outcome.reason)
    assert record.outcome.rank == 1


def kill_when_stepping(folder: Path, rank: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for path in folder.glob(f"scratch/*/*/events.{rank}.jsonl"):
            events = read_events(path, rank)
            if events.blocks:
                os.kill(events.hello.pid, signal.SIGKILL)
                return
        time.sleep(0.2)


@pytest.mark.parametrize("name", cases("unavailable"))
def test_where_its_install_is_broken_it_is_unavailable_with_the_reason_and_others_run(name: str, tmp_path: Path):
    # The host's own interpreter has no framework.
    wanted = study(
        name, framework={"name": [name, "null"], name: {"interpreter": sys.executable}, "null": {"time": "law"}}
    )
    bench = Workbench(wanted, tmp_path)
    records = bench.run()

    assert [record.trial.framework.name for record in records if record.ok] == ["null"]
    row = next(row for row in bench.snapshot().comparison.rows if row.framework == name)
    assert row.outcome in {"skipped", "unavailable"}
    assert row.reason
