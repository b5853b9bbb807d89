"""Every fact that ranks may report, and every fact about the inputs of a run. No other module knows their keys.

The table of facts in docs/reference/protocol.md is generated from here (`docs/generate_reference.py`), and a test
compares the keys with those that the worker's source sends. Stages read `rank.reported` and `record.input_facts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    """What one rank reports about itself."""

    stored: Mapping[str, object]

    phases_derived = Fact(
        derived_phases,
        "The phases inside a fused step: `by` (`differences`, `operators` or `timers`), `seconds` (phase → seconds per"
        " step), `steps` (the number of steps behind it) and, where known, `step_s` (the whole step at that time, to"
        " which the others are scaled).",
    )
    phases_mixed = Fact(
        mixed_phases,
        "Phases that cannot be told apart: `phases` (two or more, e.g. `communication` and `update`) and `why`, in"
        " words.",
    )
    compile_s = Fact(number, "Tracing and compilation before the first step.", unit="s")
    compile_in_first_step_s = Fact(
        number,
        "Compilation in the first step, in frameworks that compile when a model is first called.",
        unit="s",
    )
    waits = Fact(flag, "Whether the rank waits for its peers, or sleeps, inside its compute phases.")
    threads_ran_s = Fact(number, "CPU time of all threads of the rank over its measured steps.", unit="s")
    threads_waited_s = Fact(
        number,
        "How long threads of the rank were runnable while no core was free, over its measured steps, all threads"
        " together.",
        unit="s",
    )
    bucket_bytes = Fact(
        numbers,
        "Sizes of the gradient buckets, in the order in which they are exchanged.",
        unit="bytes",
    )
    unit_bytes = Fact(
        numbers,
        "For sharded training: sizes of the sharded units, in the order of the backward pass.",
        unit="bytes",
    )
    message_bytes = Fact(number, "For the null framework: gradients of a step, all buckets together.", unit="bytes")
    buckets = Fact(whole, "For the null framework: number of equal buckets in which `message_bytes` is sent.")
    hand_over_bytes_per_sample = Fact(
        number, "For a pipeline: bytes that one stage passes to the next.", unit="bytes per sample"
    )
    micro_batches = Fact(whole, "For gradient accumulation: micro-batches per worker and step.")
    pipeline_micro_batches = Fact(
        whole,
        "For a pipeline: micro-batches per step into which the global batch is cut.",
        formerly="microbatches",
    )
    samples_per_step = Fact(
        number,
        "For a user's program: mean number of samples that its measured steps reported, or that a size of its model's"
        " inputs shows; null if no size is the study's batch. If it is not the study's batch, the run gets a warning.",
        unit="samples",
    )
    samples_from = Fact(
        text,
        "Source of `samples_per_step`: `mark` (the program's own marks) or `hooks` (PyTorch's).",
    )
    unmatched_inputs = Fact(
        texts,
        "For a user's program: shapes of its model's inputs, if they agree on their first size and no size of them is"
        " the study's batch.",
    )
    gradient_bytes = Fact(number, "For a user's program: size of all its gradients.", unit="bytes")
    exchange = Fact(
        text,
        "For a user's program: PyTorch's exchange backend; `none` without peers; null if another package may exchange.",
    )
    exchanges_per_step = Fact(
        number,
        "For a user's program: number of exchanges between ranks per step, as counted by PyTorch; null if PyTorch does"
        " not count them.",
    )
    missing_file = Fact(
        text, "For a user's program that failed: the file that it did not find, relative to the program's folder."
    )
    library = Fact(text, "For a stand-alone collective: the library that does the exchange.")
    verified = Fact(flag, "For a stand-alone collective: whether results of the first round were checked.")
    threads = Fact(whole, "Number of compute threads in use.")
    layout = Fact(text, "Memory layout of images: `nchw` or `nhwc`.")
    blas = Fact(text, "Libraries of the kernels.")
    compiled = Fact(text_or_flag, "How the step is compiled; false if it is not.")
    precision = Fact(text, "Number format of the computation: `fp32`, `bf16`, …")
    wrapped = Fact(text, "The framework's wrapper for training with peers; `none` for one worker.")
    dropout = Fact(
        text,
        "Source of the random numbers of dropout; null if the requested graph has no dropout. A proof runs without"
        " dropout and reports what the source would be: see `drops_out`.",
    )

    losses = Fact(
        rows,
        "For the float64 reference, which is one process for all workers: per worker, the losses of its batch at each"
        " step.",
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
        "For the float64 reference: the evidence of each of its float32 trainings, collected from `rounding` events.",
        use="proof",
        by_host=True,
    )
    coarse_gradients = Fact(
        evidence_of,
        "For the float64 reference: format (`bf16`) → tensor → norm and sketch of the gradient of step 0 when every"
        " layer rounds what it gives to that format.",
        use="proof",
    )
    weights_equal_on_devices = Fact(
        flag,
        "For one process with several devices: whether each holds the same weights after the last step.",
        use="proof",
    )
    loss_over = Fact(
        text,
        "`global` if the loss that a rank reports is the mean over the batches of all workers; `worker`, or absent, if"
        " it is the mean over its own batch.",
        use="proof",
    )
    staleness = Fact(
        staleness_of,
        "For an asynchronous strategy: `mean` and `max` of the number of updates by other workers between a worker's"
        " reading of the weights and its own update, over the steps counted; null if unknown.",
        unit="updates",
        use="proof",
    )
    compression_error = Fact(
        number,
        "For a compressed exchange: the part of the gradient that compression loses; sum of the norms of the errors ÷"
        " sum of the norms of the exact means.",
        use="proof",
    )
    exchange_error = Fact(
        number,
        "For a compressed exchange: as `compression_error`, but relative to what was to be exchanged, which is the"
        " gradient and what earlier exchanges have left over.",
        use="proof",
    )
    framework_flops = Fact(
        number,
        "The framework's own count for one step of one worker; null if it does not count.",
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
    compilation_cache = Fact(text, "For JAX: state of the persistent compilation cache.", use="kept")
    xla_flags = Fact(text, "`XLA_FLAGS` of the process.", use="kept")
    interop_threads = Fact(whole, "Threads that run operators in parallel.", use="kept")
    onednn = Fact(flag, "Whether oneDNN kernels are enabled.", use="kept")
    cpu_capability = Fact(text, "For PyTorch: the instruction set that its kernels use.", use="kept")
    channels_last = Fact(flag, "For PyTorch: whether images are stored channels-last.", use="kept")
    device = Fact(text, "Name of the GPU.", use="kept")
    devices = Fact(whole, "Workers that are devices of this process.", use="kept")
    backend_version = Fact(text, "For Keras: its backend with its version.", use="kept")
    batch_norm = Fact(text, "For Keras: how its batch normalization differs.", use="kept")
    engine = Fact(text, "For MXNet: the type of its engine.", use="kept")
    update_on_kvstore = Fact(flag, "For MXNet: whether the key-value store applies the optimizer.", use="kept")
    last_gradient = Fact(text, "For PyTorch: the parameter whose gradient ends the backward pass.", use="kept")
    layer_hooks = Fact(flag, "For PyTorch: whether hooks time every layer.", use="kept")
    layer_hooks_s_per_step = Fact(number, "Estimated cost of these hooks per step.", unit="s", use="kept")
    ddp_avg_forward_compute_s = Fact(number, "DDP's own timing of the forward pass.", unit="s", use="kept")
    ddp_avg_backward_compute_s = Fact(number, "DDP's own timing of the backward pass.", unit="s", use="kept")
    ddp_avg_backward_comm_s = Fact(number, "DDP's own timing of the exchange.", unit="s", use="kept")
    ddp_avg_backward_compute_comm_overlap_s = Fact(
        number, "DDP's own timing of the exchange that the backward pass hides.", unit="s", use="kept"
    )
    local_from_step = Fact(whole, "For post-local SGD: the first step without an exchange.", use="kept")
    weights_averaged_every = Fact(whole, "For post-local SGD: steps between two averages.", unit="steps", use="kept")
    shortened_for_proof = Fact(text, "Knobs that a proof shortened, with their requested values.", use="kept")
    compressed_from_step = Fact(whole, "The first step whose exchange is compressed.", use="kept")
    compression_rate = Fact(number, "For PowerSGD: elements before compression ÷ elements after it.", use="kept")
    parameters_updated = Fact(whole, "For ZeRO: parameters that this rank updates.", use="kept")
    parameters_held = Fact(
        whole, "For sharded, tensor-parallel and pipeline training: parameters on this rank.", use="kept"
    )
    shard_units = Fact(whole, "For sharded training: number of units.", use="kept")
    stage_layers = Fact(texts, "For a pipeline: layers of this rank's stage.", use="kept")
    optimizers = Fact(texts, "For a user's program: classes of its optimizers.", use="kept")
    hooks = Fact(flag, "For a user's program: whether hooks find its steps.", use="kept")
    forwards_per_step = Fact(number, "For a user's program: calls of its model per step.", use="kept")
    evaluations = Fact(whole, "For a user's program: calls of its model outside training.", use="kept")
    operation = Fact(text, "For a stand-alone collective: the operation.", use="kept")
    interface = Fact(text, "For a stand-alone collective: the network interface that it uses.", use="kept")
    mpi = Fact(text, "For MPI: version of the library.", use="kept")
    ranks = Fact(whole, "For MPI: number of ranks.", use="kept")
    law_exchange_s = Fact(number, "For the null framework: time of the exchange by its law.", unit="s", use="kept")
    exchange_s = Fact(number, "For the null framework: mean time of the exchange.", unit="s", use="kept")


@dataclass(frozen=True, slots=True)
class InputFacts:
    """What the host knows about the model that a run trains."""

    stored: Mapping[str, object]

    parameters = Fact(whole, "Trainable parameters of the graph.", by_host=True)
    gradient_bytes = Fact(number, "Gradients of all parameters.", unit="bytes", by_host=True)
    forward_flops = Fact(number, "Of the forward pass.", unit="FLOPs per sample", by_host=True)
    backward_flops = Fact(number, "Of the backward pass.", unit="FLOPs per sample", by_host=True)
    worker = Fact(text, "Digest of the worker's source.", by_host=True)
