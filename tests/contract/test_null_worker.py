"""Real processes of the null framework, started as a site would, held against the law's closed form."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import paceline_worker
from paceline.frameworks.null import KNOBS, NULL, PHASES, law_step_s
from paceline.plan.job import make_job
from paceline.plan.process import Host, Topology
from paceline.plan.trial import (
    ClusterChoice,
    FrameworkChoice,
    Limits,
    MeasureChoice,
    Trial,
    WorkloadChoice,
)
from paceline.sites.remote.agent.ports import free_ports

pytestmark = pytest.mark.processes

SOURCES = Path(paceline_worker.__file__).parents[1]
PARAMETERS = 250_000
GRADIENT_BYTES = 4 * PARAMETERS
BATCH = 8
GRAPH = {
    "version": 1,
    "name": "tiny",
    "layers": [
        {"name": "input", "kind": "input", "parameters": []},
        {
            "name": "fc",
            "kind": "linear",
            "parameters": [
                {"name": "weight", "shape": [500, 500], "trainable": True},
                {"name": "frozen", "shape": [500], "trainable": False},
            ],
        },
    ],
}
CLOCK_GRAIN_S = 1e-6
PATIENCE_S = 60
"""Far beyond what any of this takes; only a defect reaches it."""


class Ranks:
    """The ranks of one run, as processes."""

    def __init__(self, folder, *, workers=1, steps=4, warmup_steps=2, repeat=0, python=sys.executable, **changed):
        self.folder = folder
        self.knobs = {name: knob.default for name, knob in KNOBS.items()} | {"time": "law"} | changed
        trial = Trial(
            workload=WorkloadChoice(
                model="tiny",
                options={},
                graph="0" * 16,
                batch_per_worker=BATCH,
                scaling="weak",
                input="resident",
                loader_workers=0,
                seed=0,
            ),
            framework=FrameworkChoice(
                name="null",
                strategy="allreduce",
                strategy_class="exact",
                knobs=self.knobs,
                environment="",
                lock="",
            ),
            cluster=ClusterChoice(
                site="local",
                hosts=1,
                workers_per_host=workers,
                threads_per_worker=1,
                device="cpu",
                network=None,
                oversubscribe=True,
            ),
            measure=MeasureChoice(warmup_steps=warmup_steps, steps=steps, layers=False),
            limits=Limits(time_s=PATIENCE_S, memory_bytes=None),
        )
        topology = Topology(
            hosts=(Host(name="here", address="127.0.0.1", cores=(0,), ports=tuple(free_ports(1, "127.0.0.1"))),)
        )
        self.port = topology.hosts[0].ports[0]
        processes = NULL.processes(trial, topology)
        job = make_job(
            trial,
            run_id="run",
            repeat=repeat,
            module=NULL.module,
            graph=GRAPH,
            topology=topology,
            processes=processes,
            weights=None,
            data_index=None,
        )
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        self.argv = [[python, *process.argv] for process in processes]
        self.running = []

    def start(self):
        for rank, argv in enumerate(self.argv):
            env = {
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(SOURCES),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PACELINE_JOB": str(self.folder / "job.json"),
                "PACELINE_RANK": str(rank),
            }
            self.running.append(subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self

    def codes(self):
        return [process.wait(timeout=PATIENCE_S) for process in self.running]

    def events(self, rank=0):
        path = self.folder / f"events.{rank}.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def last(self, rank=0):
        return self.events(rank)[-1]

    def wait_for_note(self, rank=0):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            # A line may be half written: look for it whole.
            path = self.folder / f"events.{rank}.jsonl"
            for line in path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []:
                if json.loads(line)["event"] == "note":
                    return json.loads(line)["message"]
            time.sleep(0.01)
        raise TimeoutError(f"rank {rank} said nothing")

    def column(self, name, rank=0, kinds=("first", "warmup", "measured")):
        blocks = [e for e in self.events(rank) if e["event"] == "steps" and e["kind"] in kinds]
        return [value for block in blocks for value in (block["phases"] | block)[name]]

    def facts(self, rank=0):
        merged = {}
        for event in self.events(rank):
            merged.update(event.get("facts") or {})
        return merged

    def truth(self):
        return law_step_s(self.knobs, len(self.argv), BATCH, GRADIENT_BYTES)


@pytest.fixture
def ranks(tmp_path):
    made = []

    def make(**options):
        made.append(Ranks(tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        for process in one.running:
            process.kill()
            process.wait()


def python_3_6():
    pyenv = shutil.which("pyenv")
    if pyenv:
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=True).stdout.strip()
        for found in sorted(Path(root, "versions").glob("3.6*/bin/python")):
            return str(found)
    return None


LAWS = {
    "default": {},
    "overlap": {"overlap": 0.25},
    "buckets": {"bucket_bytes": 300_000.0, "overlap": 0.1},
    "slow rank": {"slow_rank": 1, "slow_factor": 2.0},
    "slow input": {"slow_input_factor": 60.0},
    "slow input, prefetched": {"slow_input_factor": 60.0, "input_overlap": True},
    "per sample": {"compute_per_sample_s": 1e-3, "input_per_sample_s": 1e-4, "message_bytes": 2e6},
}


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("law", LAWS)
def test_law_time_equals_the_closed_form(ranks, workers, law):
    run = ranks(workers=workers, **LAWS[law]).start()

    assert run.codes() == [0] * workers
    truth = run.truth()
    for rank in range(workers):
        first, *later = run.column("wall_s", rank)
        assert first == pytest.approx(truth["first_step_s"], abs=1e-9)
        assert later == pytest.approx([truth["step_s"]] * 5, abs=1e-9)
        assert run.facts(rank)["exchange_s"] == pytest.approx(truth["exchange_s"], abs=1e-9)
        assert sum(run.column(phase, rank)[-1] for phase in PHASES) == pytest.approx(truth["step_s"], abs=1e-9)
    assert run.column("communication")[-1] == pytest.approx(truth["communication_s"], abs=1e-9)
    assert run.column("data")[-1] == pytest.approx(truth["data_s"], abs=1e-9)
    assert run.column("cpu_s")[-1] == pytest.approx(
        truth["compute_s"] + truth["update_s"] + truth["overhead_s"], abs=1e-9
    )


def test_slow_rank_computes_and_the_other_waits(ranks):
    run = ranks(workers=2, slow_rank=1, slow_factor=2.0, message_bytes=0.0).start()

    assert run.codes() == [0, 0]
    assert run.column("communication", 1) == pytest.approx([0.0] * 6, abs=1e-9)
    assert run.column("communication", 0) == pytest.approx([0.045] * 6, abs=1e-9)
    assert run.column("backward", 1) == pytest.approx([0.060] * 6, abs=1e-9)


def test_jittered_ranks_still_share_their_step(ranks):
    run = ranks(workers=2, jitter=0.2, jitter_correlation=0.5, run_jitter=0.1).start()

    assert run.codes() == [0, 0]
    assert run.column("forward", 0) != run.column("forward", 1)
    assert run.column("wall_s", 0) == pytest.approx(run.column("wall_s", 1), abs=1e-9)
    for slower in zip(run.column("communication", 0), run.column("communication", 1), strict=True):
        assert min(slower) == pytest.approx(run.truth()["exposed_s"], abs=1e-9)


def test_worker_says_who_it_is_and_its_loss_falls_alike(ranks):
    run = ranks(workers=2).start()

    assert run.codes() == [0, 0]
    (ready,) = (e for e in run.events() if e["event"] == "ready")
    assert (ready["framework_version"], ready["parameters"]) == ("law-2", PARAMETERS)
    assert run.facts()["message_bytes"] == GRADIENT_BYTES
    losses = run.column("loss", 0)
    assert losses == sorted(losses, reverse=True)
    assert losses == run.column("loss", 1)
    assert [e["kind"] for e in run.events() if e["event"] == "steps"] == ["first", "warmup", "measured"]


def test_crash_has_the_last_word_and_the_other_rank_names_it(ranks):
    run = ranks(workers=3, fault="crash", fault_rank=1, fault_step=3).start()

    assert run.codes() == [81, 81, 81]
    assert run.last(1)["error"] == "RuntimeError"
    assert "crash asked for by the study on rank 1 at step 3" in run.last(1)["message"]
    assert "rank 1 is gone" in run.last(0)["message"]
    assert "rank 1 is gone" in run.last(2)["message"]


def test_exit_leaves_no_last_word(ranks):
    run = ranks(fault="exit", fault_step=3).start()

    assert run.codes() == [7]
    assert run.last()["event"] == "steps"


def test_hang_ends_on_request(ranks):
    run = ranks(workers=2, fault="hang").start()
    run.wait_for_note()

    for process in run.running:
        process.send_signal(signal.SIGTERM)
    assert run.codes()[0] == 83
    assert run.last()["event"] == "ended"


def test_hard_hang_ignores_sigterm_and_dies_of_sigkill(ranks):
    run = ranks(fault="hang-hard").start()
    run.wait_for_note()

    (process,) = run.running
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.3)
    process.kill()
    assert run.codes() == [-signal.SIGKILL]
    assert run.last()["event"] == "note"


def test_memory_hog_holds_what_it_was_told_to(ranks):
    wanted = 64 * 2**20
    run = ranks(fault="memory", fault_bytes=float(wanted)).start()

    assert f"holds {wanted} bytes" in run.wait_for_note()
    (process,) = run.running
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        pytest.skip("resident memory is read from /proc, which is not here")
    (resident,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    assert int(resident.split()[1]) * 1024 > wanted
    process.terminate()
    assert run.codes() == [83]


def test_fault_of_a_rank_that_is_not_there_does_nothing(ranks):
    assert ranks(fault="crash", fault_rank=1).start().codes() == [0]


def test_taken_port_is_named(ranks):
    run = ranks(workers=2)
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", run.port))
        squatter.listen(1)
        run.start()

        assert run.running[0].wait(timeout=PATIENCE_S) == 81
    message = run.last()["message"]
    assert f"127.0.0.1:{run.port}" in message
    assert "Address already in use" in message


QUICK = {"time": "real", "compute_s": 0.006, "input_s": 0.001, "update_s": 0.001, "message_bytes": 1e6}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"burn": True},
        {"overlap": 1.0, "bucket_bytes": 300_001.0},
        {"slow_rank": 1, "slow_factor": 3.0, "overlap": 0.5, "input_overlap": True},
    ],
    ids=["plain", "burning", "overlapped", "slow rank"],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_real_time_is_never_shorter_than_the_law(ranks, workers, changed):
    run = ranks(workers=workers, beta_s_per_byte=4e-9, **(QUICK | changed)).start()

    assert run.codes() == [0] * workers
    truth = run.truth()
    # Of the last rank, which is the slow one where there is one: only the slowest has no slack in any step.
    assert min(run.column("wall_s", workers - 1)) >= truth["step_s"] - CLOCK_GRAIN_S
    assert run.facts()["exchange_s"] >= truth["exchange_s"] - CLOCK_GRAIN_S


def test_worker_runs_under_python_3_6(ranks):
    python = python_3_6()
    if python is None:
        pytest.skip("no Python 3.6 here: pyenv install 3.6.15")
    run = ranks(workers=2, python=python, overlap=0.25, jitter=0.1).start()

    assert run.codes() == [0, 0]
    assert run.events()[0]["python"].startswith("3.6")
    newer = ranks(workers=2, overlap=0.25, jitter=0.1)
    (newer.folder / "events.0.jsonl").rename(newer.folder / "older.jsonl")
    (newer.folder / "events.1.jsonl").unlink()
    older = [json.loads(line) for line in (newer.folder / "older.jsonl").read_text().splitlines()]

    assert newer.start().codes() == [0, 0]
    drawn = [value for event in older if event["event"] == "steps" for value in event["wall_s"]]
    assert newer.column("wall_s") == pytest.approx(drawn, rel=1e-12)


def test_real_time_runs_under_python_3_6(ranks):
    python = python_3_6()
    if python is None:
        pytest.skip("no Python 3.6 here: pyenv install 3.6.15")

    assert ranks(workers=2, python=python, overlap=0.5, **QUICK).start().codes() == [0, 0]
