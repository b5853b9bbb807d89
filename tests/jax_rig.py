"""The rig of `torch_rig` in the JAX environment. Nothing here imports JAX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paceline.frameworks.jax import JAX
from paceline.workloads import Graph
from torch_rig import Rig

PROBES = Path(__file__).parent / "integration" / "jax" / "probes"


class JaxRig(Rig):
    """Runs things in the JAX environment."""

    def job(self, graph: Graph, *, devices: int = 1, evidence: bool = False, **changed: Any) -> dict:
        """As for PyTorch, with JAX' knobs; `devices` of each of `world` processes."""
        knobs = JAX.capabilities.knobs
        own = {name: changed.pop(name) for name in knobs if name in changed}
        defaults = {name: knob.default for name, knob in knobs.items()}
        strategy = "shard_map_devices" if devices > 1 else "shard_map"
        framework = {"name": "jax", "module": JAX.module, "strategy": strategy, "knobs": defaults | own}
        job = super().job(graph, **changed) | {"framework": framework, "devices": devices}
        job["measure"]["evidence"] = evidence
        return job

    def probe(self, name: str, *arguments: str) -> Any:
        return super().probe(str(PROBES / name), *arguments)
