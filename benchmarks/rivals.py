"""The two programs of `adapters.py`, started on one core and asked for blocks of steps in turn."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from paceline.environments import Environment, cache_root
from paceline.errors import PacelineError
from paceline.frameworks import Framework
from paceline.plan import Trial
from paceline.plan.job import make_job
from paceline.run.inputs import prepare_inputs
from paceline.run.worker_source import worker_folder
from paceline.sites import tether
from paceline.sites.local import LocalSite
from paceline.workloads import graph_of

START_S = 300.0
TURN_S = 120.0
"""Longest wait for a program to be ready, and for a block."""
HERE = Path(__file__).parent
SCRIPTS = {
    "torch": "train_torch.py",
    "jax": "train_jax.py",
    "tensorflow": "train_tensorflow.py",
    "mxnet": "train_mxnet.py",
    "keras-tensorflow": "train_keras_tensorflow.py",
    "keras-jax": "train_keras_jax.py",
    "keras-torch": "train_keras_torch.py",
}
"""Framework → the program written after its documentation, in `handwritten`."""


class ProgramError(PacelineError):
    """One of the two programs ended or does not answer."""


class Program:
    """A process that takes blocks of steps on request (see `turns`)."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], stderr: Path) -> None:
        self._name, self._process, self._stderr = name, process, stderr

    def be_ready(self) -> None:
        if (word := self._line(START_S)) != "ready":
            raise ProgramError(f"{self._name} said {word!r} instead of ready")

    def take(self, steps: int) -> float:
        """Take a block; returns seconds per step."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{steps}\n".encode())
        except BrokenPipeError:
            raise ProgramError(f"{self._name} ended: {self._last_words()}") from None
        return float(self._line(TURN_S))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _line(self, timeout: float) -> str:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            raise ProgramError(f"{self._name} was silent for {timeout:.0f} s: {self._last_words()}")
        # A whole line: it is written at once.
        if not (line := self._process.stdout.readline()):
            raise ProgramError(f"{self._name} ended: {self._last_words()}")
        return line.decode().strip()

    def _last_words(self) -> str:
        return self._stderr.read_text(encoding="utf-8", errors="replace")[-2000:].strip() or "without a word"


class Rivals:
    """Our program and the hand-written one for a trial, in separate processes."""

    def __init__(self, framework: Framework, environment: Environment, trial: Trial, folder: Path) -> None:
        self._framework, self._environment, self._trial, self._folder = framework, environment, trial, folder
        topology = LocalSite().open(trial.cluster, ports=1)
        (process,) = framework.processes(trial, topology)
        graph = graph_of(trial.workload.model, trial.workload.options)
        inputs = prepare_inputs(graph, trial, cache_root(), folder, needs_weights=True)
        self._job = make_job(
            trial,
            run_id="adapters",
            repeat=0,
            module=framework.module,
            graph=graph.to_json(),
            topology=topology,
            processes=[process],
            weights=inputs.weights,
            data_index=inputs.data_index,
        )
        self._cores = ",".join(str(core) for core in process.cores)
        # Both get the variables of a rank: neither has more threads than the other.
        self._env = {"HOME": os.environ.get("HOME", "/"), **environment.variables(), **process.env}

    @contextmanager
    def written(self) -> Iterator[Program]:
        """The hand-written program, warmed up."""
        script = SCRIPTS[self._framework.name]
        workload, measure = self._trial.workload, self._trial.measure
        argv = [f"handwritten/{script}", workload.model, str(workload.batch_per_worker), str(measure.warmup_steps)]
        with self._started(argv, {"PYTHONPATH": str(HERE)}) as program:
            yield program

    @contextmanager
    def ours(self, block_steps: int, blocks: int) -> Iterator[Program]:
        """Our adapter, warmed up, with so many blocks of so many steps to take."""
        job = self._folder / "job.json"
        measure = {**asdict(self._trial.measure), "steps": block_steps * blocks}
        job.write_text(json.dumps({**self._job, "measure": measure}), encoding="utf-8")
        env = {
            "PYTHONPATH": str(worker_folder(cache_root())),
            "PACELINE_JOB": str(job),
            "PACELINE_RANK": "0",
        }
        with self._started(["adapter_turns.py", str(block_steps)], env) as program:
            yield program

    @contextmanager
    def _started(self, argv: Sequence[str], env: Mapping[str, str]) -> Iterator[Program]:
        command = self._environment.command([str(HERE / argv[0]), *argv[1:]])
        tied = [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), self._cores, "--", *command]
        stderr = self._folder / f"{Path(argv[0]).stem}.stderr"
        with stderr.open("wb") as file:
            process = subprocess.Popen(
                tied,
                env={**self._env, **env},
                cwd=self._folder,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
            )
        with process:
            program = Program(argv[0], process, stderr)
            try:
                program.be_ready()
                yield program
            finally:
                program.close()
