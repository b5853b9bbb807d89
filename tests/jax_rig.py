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

    def job(self, graph: Graph, **changed: Any) -> dict:
        """As for PyTorch, with JAX' knobs."""
        knobs = JAX.capabilities.knobs
        own = {name: changed.pop(name) for name in knobs if name in changed}
        defaults = {name: knob.default for name, knob in knobs.items()}
        framework = {"name": "jax", "module": JAX.module, "strategy": "shard_map", "knobs": defaults | own}
        return super().job(graph, **changed) | {"framework": framework}

    def probe(self, name: str, *arguments: str) -> Any:
        return super().probe(str(PROBES / name), *arguments)
