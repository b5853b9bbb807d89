"""The inputs of a run: initial weights and data, made once from a seed and cached, with their checksums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from math import prod
from pathlib import Path

from paceline.datasets import write_synthetic
from paceline.plan.trial import Trial
from paceline.workloads import Collective, Graph, Program, Workload, known_sizes
from paceline.workloads.weights import write_initial_weights

POOL_BYTES = 32 * 2**20
"""Size of the pool of synthetic samples: two steps rarely see the same batch, and the pool stays in memory."""
POOL_SAMPLES = 512
MINIMUM_BATCHES = 2
"""Every rank gets at least two different batches, so that the loss moves for a reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Inputs:
    """Files for the job and facts for the record."""

    facts: dict[str, object]
    """Checksums and sizes."""
    graph: dict[str, object] | None = None
    """The layer graph, where there is one."""
    drops_out: bool = False
    """Whether the graph that was asked for has dropout; a proof trains it without."""
    program: dict[str, object] | None = None
    """The user's program, where there is one: "folder", "script", "arguments", "files" and "working_directory"."""
    collective: dict[str, object] | None = None
    """The operation and its sizes, where a collective is measured by itself."""
    weights: dict[str, str] | None = None
    """"path" and "index" of the initial weights."""
    data_index: str | None = None
    """JSON index of the data."""
    files: tuple[Path, ...] = ()
    """All files that the ranks read, for sites that have to bring them to other hosts."""


@singledispatch
def prepare_inputs(workload: Workload, trial: Trial, cache: Path, folder: Path, *, needs_weights: bool) -> Inputs:
    """Make what the ranks read, find it in the cache, or copy it into the folder of the run."""
    raise NotImplementedError(f"no inputs are defined for a {workload.kind}")


@prepare_inputs.register
def _of_graph(graph: Graph, trial: Trial, cache: Path, _folder: Path, *, needs_weights: bool) -> Inputs:
    """Initial weights and synthetic data."""
    drops_out = graph.drops_out
    if trial.measure.evidence:
        graph = graph.without_dropout()
    facts: dict[str, object] = {"graph": graph.hash, **known_sizes(graph)}
    if not needs_weights:
        return Inputs(graph=graph.to_json(), drops_out=drops_out, facts=facts)
    weights = write_initial_weights(graph, trial.workload.seed, cache / "weights")
    sample_bytes = max(1, prod(graph.input.shape))
    samples = MINIMUM_BATCHES * trial.batch_global
    # The steps of a proof see the same two batches in turn: their order shows, and the loss falls if it trains.
    if not trial.measure.evidence:
        samples = max(samples, min(POOL_SAMPLES, POOL_BYTES // sample_bytes))
    data = write_synthetic(graph.input, samples, trial.workload.seed, cache / "data")
    facts |= {"weights_sha256": weights.sha256, "data_sha256": data.sha256, "data_samples": samples}
    return Inputs(
        graph=graph.to_json(),
        drops_out=drops_out,
        weights={"path": str(weights.path), "index": str(weights.index_path)},
        data_index=str(data.index_path),
        facts=facts,
        files=tuple(
            path
            for path in (weights.path, weights.index_path, data.path, data.labels_path, data.index_path)
            if path is not None
        ),
    )


@prepare_inputs.register
def _of_program(program: Program, trial: Trial, _cache: Path, folder: Path, *, needs_weights: bool) -> Inputs:
    """A fresh copy of the program's own files for each run: what it writes beside them is removed with the run."""
    del needs_weights
    place = folder / "program"
    for name, content in program.contents():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    values = {
        "batch_per_worker": trial.workload.batch_per_worker,
        "batch_global": trial.batch_global,
        "workers": trial.workers,
        "threads": trial.cluster.threads_per_worker,
        "seed": trial.workload.seed,
    }
    arguments = program.argv(values)
    working_directory = str(program.working_directory) if program.working_directory else None
    return Inputs(
        program={
            "folder": str(place),
            "script": program.script,
            "arguments": arguments,
            "files": list(program.files),
            "working_directory": working_directory,
        },
        facts={
            "graph": program.hash,
            "script": program.script,
            "arguments": arguments,
            "files": list(program.files),
            **({"working_directory": working_directory} if working_directory else {}),
        },
        files=(place,),
    )


@prepare_inputs.register
def _of_collective(collective: Collective, trial: Trial, _cache: Path, _folder: Path, *, needs_weights: bool) -> Inputs:
    """There is nothing to read: ranks make their messages themselves."""
    del needs_weights
    asked: dict[str, object] = {"operation": collective.operation, "sizes": list(collective.sizes_among(trial.workers))}
    return Inputs(collective=asked, facts={"graph": collective.hash, **asked})
