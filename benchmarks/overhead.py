"""The cost of measuring. It takes about 10 minutes and needs a quiet machine.

(a) instrumentation: alternating bare and instrumented steps inside one process, one ratio per process;
(b) the recorded step time against a hand-written program, each in separate processes that alternate;
(c) the host's CPU while workers measure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import trim_mean

from claims import Claim, parser, publish, say, with_ends
from paceline.environments import cache_root
from paceline.frameworks import load_framework
from paceline.plan import Trial
from paceline.plan.job import make_job
from paceline.prepared import PreparedStudy, environment_of
from paceline.record import Record, fact, summarize
from paceline.run.inputs import prepare_inputs
from paceline.run.worker_source import worker_folder
from paceline.sites import tether
from paceline.sites.local import LocalSite
from paceline.sites.remote.agent.cores import usable_cores
from paceline.spec import Study, read_study
from paceline.stats import FEWEST_WITH_SPREAD, mean_interval, plain_interval, ratio_interval
from paceline.workbench import Workbench
from paceline.workloads import graph_of

LIMIT = 1.01
HALF_WIDTH = 0.01
BATCH = 8
"""Small, so that the step is short and an added cost is most visible."""
WARMUP = 10
HERE = Path(__file__).parent
TORCH = load_framework("torch")
ENVIRONMENT = environment_of(TORCH)
MODELS = ("resnet20", "resnet44")
TRIMMED = 0.2
"""Share of the pairs of a process left out at either end, because a disturbance affects one step of a pair."""
SECONDS = 16.0
"""Seconds of alternating steps per process, however fast the machine is: this bounds the whole run."""


def study_of(model: str, steps: int, workers: list[int]) -> Study:
    return read_study(
        {
            "study": {"name": f"overhead-{model}"},
            "workload": {"model": model, "batch_per_worker": BATCH},
            "framework": {"name": "torch"},
            "cluster": {"workers_per_host": workers},
            "measure": {"warmup_steps": WARMUP, "steps": steps, "repeats": 1},
        }
    )


def pinned(argv: list[str], env: dict[str, str], folder: Path) -> str:
    """Run a program in the PyTorch environment, pinned to one core like a rank; returns its output."""
    core = str(usable_cores()[0])
    command = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), core, "--", *ENVIRONMENT.command(argv)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{argv[0]} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def variables(trial: Trial, **extra: str) -> dict[str, str]:
    """The environment variables of a rank of this trial, so that both sides have the same number of threads."""
    site = LocalSite()
    (process,) = TORCH.processes(trial, site.open(trial.cluster, ports=1))
    return {
        "HOME": os.environ.get("HOME", "/"),
        **ENVIRONMENT.variables(),
        **process.env,
        "PYTHONPATH": str(worker_folder(cache_root())),
        **extra,
    }


def ratio_of(measured: dict[str, Any]) -> float:
    """The ratio of one process: the trimmed mean of its pairs, plus the share of writing blocks."""
    middle = trim_mean(np.log(measured["ratios"]), TRIMMED)
    return float(np.exp(middle)) + float(measured["write_share"])


def instrumentation(model: str, processes: int) -> Claim:
    (trial,) = PreparedStudy.of(study_of(model, 1, [1])).trials
    graph = graph_of(trial.workload.model, trial.workload.options)
    inputs = prepare_inputs(graph, trial, cache_root(), cache_root(), needs_weights=True)
    site = LocalSite()
    topology = site.open(trial.cluster, ports=1)
    job = make_job(
        trial,
        run_id="overhead",
        repeat=0,
        module=TORCH.module,
        graph=graph.to_json(),
        topology=topology,
        processes=TORCH.processes(trial, topology),
        weights=inputs.weights,
        data_index=inputs.data_index,
    )
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        env = variables(trial, PACELINE_JOB=str(folder / "job.json"), PACELINE_RANK="0")
        for number in range(processes):
            began = time.monotonic()
            printed = pinned([str(HERE / "instrumented_blocks.py"), str(SECONDS)], env, folder)
            ratios.append(ratio_of(json.loads(printed)))
            say(f"(a) {model} {number + 1}/{processes}: {ratios[-1]:.4f} in {time.monotonic() - began:.0f} s")
    ratio = mean_interval(ratios, unit="1", least_runs=FEWEST_WITH_SPREAD)
    low, high = ratio.interval
    return Claim(
        name=f"(a) instrumented ÷ bare, {model}",
        n=processes,
        ratio=with_ends(ratio),
        claim=f"at most {LIMIT}, half-width at most {HALF_WIDTH}",
        holds=ratio.value <= LIMIT and (high - low) / 2 <= HALF_WIDTH,
        facts={"processes": ratios},
    )


def recorded_step_s(study: Study) -> list[Record]:
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench(study, Path(folder))
        bench.run()
        return bench.snapshot().records


def against_hand_written(model: str, steps: int, rounds: int) -> tuple[Claim, list[Record]]:
    study = study_of(model, steps, [1])
    (trial,) = PreparedStudy.of(study).trials
    env = variables(trial)
    depth = model.removeprefix("resnet")
    recorded: dict[int, float] = {}
    written: dict[int, float] = {}
    records = []

    def ours(number: int) -> None:
        (record,) = recorded_step_s(study)
        summary = summarize(record)
        assert summary is not None, record.outcome
        recorded[number] = summary.step_s
        records.append(record)

    def theirs(number: int) -> None:
        argv = [str(HERE / "handwritten_resnet.py"), depth, str(BATCH), str(WARMUP), str(steps)]
        written[number] = float(pinned(argv, env, HERE))

    for number in range(rounds):
        for side in (ours, theirs) if number % 2 == 0 else (theirs, ours):
            side(number)
        say(f"(b) {model} {number + 1}/{rounds}: {recorded[number] / written[number]:.4f}")
    ratio = ratio_interval(recorded, written).ratio
    claim = Claim(
        name=f"(b) recorded ÷ hand-written, {model}",
        n=rounds,
        ratio=with_ends(ratio),
        claim=f"the interval reaches below {LIMIT}",
        holds=ratio.low is not None and ratio.low < LIMIT,
        facts={"recorded_s": list(recorded.values()), "hand_written_s": list(written.values())},
    )
    return claim, records


def _host_share(record: Record) -> float:
    share = fact.number(fact.section(record.state, "during").get("host_cpu_fraction"))
    assert share is not None
    return share


def host_cpu(records: list[Record]) -> Claim:
    shares = [_host_share(record) for record in records]
    share = plain_interval(shares, unit="1", least_runs=FEWEST_WITH_SPREAD)
    return Claim(
        name="(c) host CPU ÷ one core while measuring",
        n=len(shares),
        ratio=with_ends(share),
        claim="at most 0.01 in every run",
        holds=max(shares) <= 0.01,
        facts={"runs": shares},
    )


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--processes", type=int, default=11, help="processes of (a) a model (default: %(default)s)")
    made.add_argument("--rounds", type=int, default=8, help="rounds of (b) (default: %(default)s)")
    args = made.parse_args()
    ENVIRONMENT.create(say)
    claims = [instrumentation(model, args.processes) for model in MODELS]
    written, records = against_hand_written("resnet20", 120, args.rounds)
    pair = recorded_step_s(study_of("resnet20", 120, [2]))
    return publish([*claims, written, host_cpu(records + pair)], as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
