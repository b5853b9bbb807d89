"""Every fact that ranks may report and that the host adds of a run's inputs: the only place that knows their keys.

The table of facts in docs/reference/protocol.md is generated from here (`docs/generate_reference.py`), and a test
compares the keys with those that the worker's source sends. Stages ask `rank.reported` and `record.input_facts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.record.fact import (
    Fact,
    derived_phases,
    evidence_of,
    flag,
    mapping,
    mixed_phases,
    number,
    numbers,
    roundings_of,
    rows,
    staleness_of,
    text,
    text_or_flag,
    texts,
    whole,
)


@dataclass(frozen=True, slots=True)
class RankFacts:
    """What one rank reports of itself."""

    stored: Mapping[str, Any]

    phases_derived = Fact(
        derived_phases,
        "What is inside a fused step: `by` (`differences`, `operators` or `timers`), `seconds` (phase → seconds per"
        " step), `steps` (how many it rests on) and, where known, `step_s` (the whole step at that time, to which the"
        " others are scaled).",
    )
    phases_mixed = Fact(
        mixed_phases,
        "Phases that cannot be told apart: `phases` (two or more, e.g. `communication` and `update`) and `why`, in"
        " words.",
    )
    compile_s = Fact(number, "Tracing and compilation ahead of the first step.", unit="s")
    compile_in_first_step_s = Fact(
        number,
        "Compilation in the first step, by frameworks that compile when a model is first called.",
        unit="s",
    )
    waits = Fact(flag, "True: the rank waits for its peers, or sleeps, inside its computing phases.")
    bucket_bytes = Fact(
        numbers,
        "Sizes of the gradient buckets, in the order in which they are exchanged.",
        unit="bytes",
    )
    unit_bytes = Fact(
        numbers,
        "Of sharded training: sizes of the sharded units, in the order of the backward pass.",
        unit="bytes",
    )
    message_bytes = Fact(number, "Of the null framework: gradients of a step, all buckets together.", unit="bytes")
    buckets = Fact(whole, "Of the null framework: number of equal buckets that `message_bytes` is sent in.")
    hand_over_bytes_per_sample = Fact(
        number, "Of a pipeline: what one stage hands over to the next.", unit="bytes per sample"
    )
    micro_batches = Fact(whole, "Of gradient accumulation: micro-batches per worker and step.")
    pipeline_micro_batches = Fact(
        whole,
        "Of a pipeline: micro-batches per step that the global batch is cut into.",
        formerly="microbatches",
    )
    samples_per_step = Fact(
        number,
        "Of a program of the user's: mean of the samples that its measured steps reported, or that a size of its"
        " model's inputs shows; null where no size is the study's batch. A warning if it is not the study's batch.",
        unit="samples",
    )
    samples_from = Fact(
        text,
        "What counted `samples_per_step`: `mark` (the program's own marks) or `hooks` (PyTorch's).",
    )
    unmatched_inputs = Fact(
        texts,
        "Of a program of the user's: shapes of its model's inputs where they agree on their first size, and no size of"
        " them is the study's batch.",
    )
    gradient_bytes = Fact(number, "Of a user's program: gradients of all trained parameters.", unit="bytes")
    exchange = Fact(
        text,
        "Of a user's program: PyTorch's backend of the exchange; `none` without peers; null where another package may"
        " exchange.",
    )
    exchanges_per_step = Fact(
        number,
        "Of a user's program: exchanges between ranks that PyTorch counted, of whatever, per step; null where it does"
        " not count them.",
    )
    missing_file = Fact(
        text, "Of a user's program that failed: the file that it did not find, relative to the program's folder."
    )
    library = Fact(text, "Of a collective by itself: the library that does the exchange.")
    verified = Fact(flag, "Of a collective by itself: whether results of the first round were checked.")
    threads = Fact(whole, "Compute threads in force.")
    layout = Fact(text, "Memory layout of images: `nchw` or `nhwc`.")
    blas = Fact(text, "Libraries of the kernels.")
    compiled = Fact(text_or_flag, "How the step is compiled; false: it is not.")
    precision = Fact(text, "Number format of computing: `fp32`, `bf16`, …")
    wrapped = Fact(text, "What the framework wraps the model in to train it with peers; `none` for one worker.")
    dropout = Fact(
        text,
        "Whose random numbers dropout draws; null where the graph that was asked for has none. In a proof, what it"
        " would be: see `drops_out`.",
    )

    losses = Fact(
        rows,
        "Of the float64 reference, which is one process for all workers: per worker a list of the loss of its batch at"
        " each step.",
        use="proof",
    )
    evidence = Fact(
        evidence_of,
        "`gradients`, `weights` and `statistics` → tensor → norm and sketch, collected from `evidence` events.",
        use="proof",
        by_host=True,
    )
    roundings = Fact(
        roundings_of,
        "Of the float64 reference: what each of its float32 trainings shows, collected from `rounding` events.",
        use="proof",
        by_host=True,
    )
    weights_equal_on_devices = Fact(
        flag,
        "Of one process for several devices: whether each holds the same weights after the last step.",
        use="proof",
    )
    loss_over = Fact(
        text,
        "`global`: the loss that a rank reports is the mean over the batches of all workers; `worker`, or no such"
        " fact: over its own.",
        use="proof",
    )
    staleness = Fact(
        staleness_of,
        "Of an asynchronous strategy: `mean` and `max` of how many updates of others came between a worker's reading"
        " of the weights and its own update, over the steps counted; null where it is not known.",
        unit="updates",
        use="proof",
    )
    compression_error = Fact(
        number,
        "Of a compressed exchange: what compression loses of the gradient; sum of the norms of the errors over sum of"
        " the norms of the exact means.",
        use="proof",
    )
    framework_flops = Fact(
        number,
        "What the framework itself counts for one step of one worker; null where it does not count.",
        unit="FLOPs",
        use="proof",
    )

    variables = Fact(mapping, "Environment variables that the host set for the process.", use="kept", by_host=True)
    weights_sha256 = Fact(text, "SHA-256 of the trained tensors after the last step.", use="kept")
    peak_rss_steps_bytes = Fact(
        number,
        "Peak of resident memory after the last measured step, before phases are derived.",
        unit="bytes",
        use="kept",
    )
    trace_s = Fact(number, "Tracing, a part of `compile_s`.", unit="s", use="kept")
    compilation_cache = Fact(text, "Of JAX: state of the persistent compilation cache.", use="kept")
    xla_flags = Fact(text, "`XLA_FLAGS` of the process.", use="kept")
    interop_threads = Fact(whole, "Threads that run operators side by side.", use="kept")
    onednn = Fact(flag, "Whether oneDNN kernels are enabled.", use="kept")
    cpu_capability = Fact(text, "Of PyTorch: the instruction set that its kernels use.", use="kept")
    channels_last = Fact(flag, "Of PyTorch: whether images are kept channels last.", use="kept")
    device = Fact(text, "Name of the GPU.", use="kept")
    devices = Fact(whole, "Workers that are devices of this process.", use="kept")
    backend_version = Fact(text, "Of Keras: its backend with its version.", use="kept")
    batch_norm = Fact(text, "Of Keras: how its batch normalization differs.", use="kept")
    engine = Fact(text, "Of MXNet: the type of its engine.", use="kept")
    update_on_kvstore = Fact(flag, "Of MXNet: whether the key-value store applies the optimizer.", use="kept")
    last_gradient = Fact(text, "Of PyTorch: the parameter whose gradient ends the backward pass.", use="kept")
    layer_hooks = Fact(flag, "Of PyTorch: whether hooks time every layer.", use="kept")
    layer_hooks_s_per_step = Fact(number, "Estimated cost of these hooks per step.", unit="s", use="kept")
    ddp_avg_forward_compute_s = Fact(number, "DDP's own timing of the forward pass.", unit="s", use="kept")
    ddp_avg_backward_compute_s = Fact(number, "DDP's own timing of the backward pass.", unit="s", use="kept")
    ddp_avg_backward_comm_s = Fact(number, "DDP's own timing of the exchange.", unit="s", use="kept")
    ddp_avg_backward_compute_comm_overlap_s = Fact(
        number, "DDP's own timing of the exchange that the backward pass hides.", unit="s", use="kept"
    )
    local_from_step = Fact(whole, "Of post-local SGD: the first step without an exchange.", use="kept")
    weights_averaged_every = Fact(whole, "Of post-local SGD: steps between two averages.", unit="steps", use="kept")
    shortened_for_proof = Fact(text, "Knobs that a proof shortened, as they were asked for.", use="kept")
    compressed_from_step = Fact(whole, "The first step whose exchange is compressed.", use="kept")
    compression_rate = Fact(number, "Of PowerSGD: elements before compression over those after it.", use="kept")
    parameters_updated = Fact(whole, "Of ZeRO: parameters that this rank updates.", use="kept")
    parameters_held = Fact(
        whole, "Of sharded, tensor-parallel and pipeline training: parameters on this rank.", use="kept"
    )
    shard_units = Fact(whole, "Of sharded training: number of units.", use="kept")
    stage_layers = Fact(texts, "Of a pipeline: layers of this rank's stage.", use="kept")
    optimizers = Fact(texts, "Of a user's program: classes of its optimizers.", use="kept")
    hooks = Fact(flag, "Of a user's program: whether hooks cut its steps.", use="kept")
    forwards_per_step = Fact(number, "Of a user's program: calls of its model per step.", use="kept")
    evaluations = Fact(whole, "Of a user's program: calls of its model outside training.", use="kept")
    operation = Fact(text, "Of a collective by itself: the operation.", use="kept")
    interface = Fact(text, "Of a collective by itself: the network interface it is bound to.", use="kept")
    mpi = Fact(text, "Of MPI: version of the library.", use="kept")
    ranks = Fact(whole, "Of MPI: size of the world.", use="kept")
    law_exchange_s = Fact(number, "Of the null framework: the exchange by its law.", unit="s", use="kept")
    exchange_s = Fact(number, "Of the null framework: mean time of the exchange.", unit="s", use="kept")


@dataclass(frozen=True, slots=True)
class InputFacts:
    """What the host knows of what a run trains."""

    stored: Mapping[str, Any]

    parameters = Fact(whole, "Trainable parameters of the graph.", by_host=True)
    gradient_bytes = Fact(number, "Gradients of all parameters.", unit="bytes", by_host=True)
    forward_flops = Fact(number, "Of the forward pass.", unit="FLOPs per sample", by_host=True)
    backward_flops = Fact(number, "Of the backward pass.", unit="FLOPs per sample", by_host=True)
    worker = Fact(text, "Digest of the worker's source.", by_host=True)
