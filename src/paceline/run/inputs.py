"""What the ranks of a run read: initial weights and data, made once from a seed, cached, with their checksums."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from paceline.datasets import write_synthetic
from paceline.plan.trial import Trial
from paceline.workloads.cost import cost
from paceline.workloads.graph import Graph
from paceline.workloads.weights import write_initial_weights

POOL_BYTES = 32 * 2**20
"""Synthetic samples kept: enough that two steps rarely see the same batch, little enough to stay in memory."""
POOL_SAMPLES = 512
MINIMUM_BATCHES = 2
"""Every rank gets at least two different batches, so that the loss moves for a reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """Files for the job and facts for the record."""

    weights: dict[str, str] | None
    """"path" and "index" of the initial weights."""
    data_index: str | None
    """JSON index of the data."""
    facts: dict[str, Any]
    """Checksums and sizes."""
    files: tuple[Path, ...] = ()
    """All of them, for sites that must bring them to other hosts."""


def prepare_inputs(trial: Trial, graph: Graph, cache: Path, *, needs_weights: bool) -> Inputs:
    """Make, or find in the cache, what the ranks read."""
    total = cost(graph)
    facts: dict[str, Any] = {
        "graph": graph.hash,
        "parameters": graph.num_parameters,
        "gradient_bytes": total.gradient_bytes,
        "forward_flops": total.forward_flops,
        "backward_flops": total.backward_flops,
    }
    if not needs_weights:
        return Inputs(weights=None, data_index=None, facts=facts)
    weights = write_initial_weights(graph, trial.workload.seed, cache / "weights")
    sample_bytes = max(1, prod(graph.input.shape))
    samples = MINIMUM_BATCHES * trial.batch_global
    # A proof's steps see the same two batches in turn: their order shows, and the loss falls if anything is learnt.
    if not trial.measure.evidence:
        samples = max(samples, min(POOL_SAMPLES, POOL_BYTES // sample_bytes))
    data = write_synthetic(graph.input, samples, trial.workload.seed, cache / "data")
    facts |= {"weights_sha256": weights.sha256, "data_sha256": data.sha256, "data_samples": samples}
    return Inputs(
        weights={"path": str(weights.path), "index": str(weights.index_path)},
        data_index=str(data.index_path),
        facts=facts,
        files=tuple(
            path
            for path in (weights.path, weights.index_path, data.path, data.labels_path, data.index_path)
            if path is not None
        ),
    )
