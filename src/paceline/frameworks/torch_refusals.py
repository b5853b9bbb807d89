"""Which trials PyTorch's strategies and knobs rule out, with the reason. `plan` asks before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from paceline.plan.capabilities import Knob
from paceline.plan.knob_values import integer, optional_integer
from paceline.plan.trial import Trial
from paceline.workloads.graph import Graph

DDP = ("ddp", "zero", "post_local_sgd")
"""Strategies that average gradients in DistributedDataParallel."""
MODEL_PARALLEL = ("pipeline", "tensor")
"""Strategies that split the model and not the samples."""

BELONGS_TO = {
    "bucket_bytes": DDP,
    "overlap": DDP,
    "gradient_as_bucket_view": DDP,
    "sync_buffers": DDP,
    "hook": ("ddp",),
    "powersgd_rank": ("ddp",),
    "local_sgd_start": ("post_local_sgd",),
    "local_sgd_period": ("post_local_sgd",),
    "reshard_after_forward": ("fsdp",),
    "schedule": ("pipeline",),
    "microbatches": ("pipeline",),
}
"""Knob → the strategies that it belongs to. With other strategies it must have its default, except with `single`, which
accepts any value so that it can be the baseline of a study that sweeps the knob."""

POWERSGD_START = 2
"""First steps that PowerSGD does not compress, until DDP has rebuilt its buckets."""


def refuses(trial: Trial, knobs: Mapping[str, Knob]) -> str | None:
    """Why this trial cannot run with any workload, or None."""
    strategy, chosen = trial.framework.strategy, trial.framework.knobs
    for name, strategies in BELONGS_TO.items():
        if strategy not in (*strategies, "single") and chosen[name] != knobs[name].default:
            return f"knob {name} belongs to strategy {' and '.join(strategies)}, and says nothing to {strategy}"
    if chosen["powersgd_rank"] != knobs["powersgd_rank"].default and chosen["hook"] != "powersgd":
        return "powersgd_rank says nothing without hook = 'powersgd'"
    if not chosen["overlap"] and chosen["bucket_bytes"] is not None:
        return "overlap = false makes one bucket of everything, so bucket_bytes says nothing"
    return _of_strategy(trial) or _of_layers(trial) or _of_phases_in_two(trial)


def refuses_graph(trial: Trial, graph: Graph) -> str | None:
    """Why this graph cannot be trained with the trial's strategy and knobs, or None."""
    strategy, workers = trial.framework.strategy, trial.workers
    if integer(trial.framework.knobs, "accumulate") > 1 and any(layer.kind == "batch_norm" for layer in graph.layers):
        return "accumulate would normalise each micro-batch by itself: another computation than the workload's"
    if workers == 1 or strategy not in MODEL_PARALLEL:
        return None
    attention = [layer for layer in graph.layers if layer.kind == "attention"]
    if not attention:
        return f"strategy {strategy} deals out the blocks of a transformer, and this workload has no attention"
    if any(layer.kind == "batch_norm" for layer in graph.layers):
        return f"strategy {strategy} would make batch norms see other samples than the workload's"
    if strategy == "pipeline" and len(attention) < workers:
        return f"{len(attention)} blocks cannot fill {workers} stages"
    heads = next((heads for layer in attention if (heads := int(str(layer.attributes["heads"]))) % workers), None)
    if strategy == "tensor" and heads is not None:
        return f"{heads} attention heads cannot be dealt out equally to {workers} workers"
    return None


def _of_strategy(trial: Trial) -> str | None:
    strategy, chosen = trial.framework.strategy, trial.framework.knobs
    cut, batch = integer(chosen, "accumulate"), trial.workload.batch_per_worker
    if cut > 1 and strategy in MODEL_PARALLEL:
        return f"accumulate is for workers with a batch of their own, not for strategy {strategy}"
    if cut > 1 and trial.cluster.device != "cpu":
        return "accumulate takes its times on the CPU only"
    # A proof may have a smaller batch, which it cuts into fewer micro-batches.
    if batch % cut and not trial.measure.evidence:
        return f"batch_per_worker {batch} cannot be cut into {cut} equal micro-batches"
    if trial.workers == 1:
        return None
    if chosen["compile"] and strategy in ("fsdp", *MODEL_PARALLEL):
        return f"compile is not made to work with strategy {strategy}"
    if strategy == "pipeline":
        return _of_pipeline(trial)
    return None


def _of_pipeline(trial: Trial) -> str | None:
    chosen = trial.framework.knobs
    if chosen["precision"] != "fp32":
        return "stages of a pipeline hand on fp32 values, which autocast would not"
    count = optional_integer(chosen, "microbatches")
    if count is None or trial.measure.evidence:
        return None
    if trial.batch_global % count:
        return f"a global batch of {trial.batch_global} cannot be cut into {count} equal micro-batches"
    if chosen["schedule"] == "1f1b" and count < trial.workers:
        return f"schedule 1f1b wants at least one micro-batch per stage, {trial.workers}, not {count}"
    return None


def _of_layers(trial: Trial) -> str | None:
    if not trial.measure.layers:
        return None
    if trial.framework.knobs["compile"]:
        return "per-layer times need layers, and compile fuses them"
    if trial.cluster.device != "cpu":
        return "per-layer times are taken on the CPU only"
    if integer(trial.framework.knobs, "accumulate") > 1:
        return "per-layer times are of whole batches, not of accumulated micro-batches"
    if trial.workers > 1 and trial.framework.strategy in ("fsdp", *MODEL_PARALLEL):
        return f"per-layer times cannot be had where strategy {trial.framework.strategy} deals out layers"
    return None


def _of_phases_in_two(trial: Trial) -> str | None:
    """Measured steps must all be of one kind, after the strategy has switched; a proof covers both kinds."""
    if trial.workers == 1 or trial.measure.evidence:
        return None
    chosen, warm = trial.framework.knobs, trial.measure.warmup_steps
    if chosen["hook"] == "powersgd" and warm < POWERSGD_START:
        return f"PowerSGD begins with step {POWERSGD_START}: ask for at least as many warmup_steps, not {warm}"
    if trial.framework.strategy == "post_local_sgd" and warm < (start := integer(chosen, "local_sgd_start")):
        return f"local SGD begins with step {start}: ask for at least as many warmup_steps, not {warm}"
    return None
