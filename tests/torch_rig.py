"""A rig that runs jobs and probes in the PyTorch environment, each in processes of its own.

Nothing here imports PyTorch: probes (`integration/torch/probes`) do, in the environment's interpreter, and answer with JSON on their
last line or with an .npz file; the tests compare with NumPy.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.datasets.synthetic import write_synthetic
from paceline.frameworks.base import WORKER_ARGV
from paceline.frameworks.torch import TORCH
from paceline.sites.remote.agent.ports import free_ports
from paceline.workloads import Graph
from paceline.workloads.weights import write_initial_weights

PROBES = Path(__file__).parent / "integration" / "torch" / "probes"
TIME_LIMIT_S = 240
"""For a process that hangs; the tests themselves take seconds."""


@dataclass(frozen=True)
class Rig:
    """Runs things in the environment."""

    command: list[str]
    env: dict[str, str]
    folder: Path

    def files(self, graph: Graph, samples: int = 64) -> dict[str, Any]:
        """Graph, initial weights and data, as a job names them."""
        weights = write_initial_weights(graph, 0, self.folder / "weights")
        data = write_synthetic(graph.input, samples, 0, self.folder / "data")
        return {
            "graph": graph.to_json(),
            "weights": {"path": str(weights.path), "index": str(weights.index_path)},
            "data": str(data.index_path),
        }

    def job(self, graph: Graph, *, world: int = 1, batch: int = 8, loader_workers: int = 0, **changed: Any) -> dict:
        """A job with the defaults of every knob.

        `changed` holds knobs, or warmup_steps, steps, layers, evidence, input, strategy, samples.
        """
        files = self.files(graph, changed.pop("samples", 64))
        measure = {"warmup_steps": 2, "steps": 3, "layers": False, "evidence": False}
        measure |= {name: changed.pop(name) for name in tuple(changed) if name in measure}
        kind = changed.pop("input", "resident")
        strategy = changed.pop("strategy", "ddp")
        knobs = {name: knob.default for name, knob in TORCH.capabilities.knobs.items()} | changed
        return {
            "version": 1,
            "run_id": "test",
            "repeat": 0,
            "framework": {"name": "torch", "module": TORCH.module, "strategy": strategy, "knobs": knobs},
            "graph": files["graph"],
            "drops_out": graph.drops_out,
            "weights": files["weights"],
            "input": {"kind": kind, "index": files["data"], "loader_workers": loader_workers},
            "batch_per_worker": batch,
            "seed": 0,
            "world_size": world,
            "processes": [
                {"rank": r, "host": "h", "address": "127.0.0.1", "interface": "lo", "cores": [], "local_rank": r}
                for r in range(world)
            ],
            "rendezvous": {"address": "127.0.0.1", "ports": [free_port()]},
            "threads": 1,
            "device": "cpu",
            "measure": measure,
        }

    def start(
        self, job: dict, folder: Path, argv: tuple[str, ...] = WORKER_ARGV, ranks: int | None = None
    ) -> list[subprocess.Popen]:
        """All ranks of a job, or the first few, under way."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "job.json"
        path.write_text(json.dumps(job), encoding="utf-8")
        return [
            subprocess.Popen(
                [*self.command, *argv],
                env=self.env | {"PACELINE_JOB": str(path), "PACELINE_RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(job["world_size"] if ranks is None else ranks)
        ]

    def run(self, job: dict, folder: Path, argv: tuple[str, ...] = WORKER_ARGV) -> list[list[dict]]:
        """The events of each rank of a job that ends well."""
        for process in self.start(job, folder, argv):
            output, _ = process.communicate(timeout=TIME_LIMIT_S)
            assert process.returncode == 0, output
        return [read_events(folder, rank) for rank in range(job["world_size"])]

    def probe(self, name: str, *arguments: str) -> Any:
        """Run probes/NAME.py and give back what it says on its last line."""
        done = subprocess.run(
            [*self.command, str(PROBES / f"{name}.py"), *arguments],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])


def free_port() -> int:
    """Bound late, by another process: the product's own way to keep others away from it until then."""
    return free_ports(1, "127.0.0.1")[0]


def read_events(folder: Path, rank: int) -> list[dict]:
    path = folder / f"events.{rank}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def only(events: list[dict], kind: str) -> dict:
    (event_of_kind,) = [event for event in events if event["event"] == kind]
    return event_of_kind


def told_facts(events: list[dict]) -> dict:
    """Of all events that tell some: the loop tells its own where the kernel counts them."""
    return {name: value for event in events if event["event"] == "facts" for name, value in event["facts"].items()}
