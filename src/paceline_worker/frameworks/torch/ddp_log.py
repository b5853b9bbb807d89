"""What DistributedDataParallel tells of itself, as facts."""

TIME_FACTS = {
    "avg_forward_compute_time": "ddp_avg_forward_compute_s",
    "avg_backward_compute_time": "ddp_avg_backward_compute_s",
    "avg_backward_comm_time": "ddp_avg_backward_comm_s",
    "avg_backward_compute_comm_overlap_time": "ddp_avg_backward_compute_comm_overlap_s",
}
"""Field of DDP's log, in nanoseconds → fact."""


def exchange_facts(wrapped):
    """What DDP says of its buckets and its own (sampled) times; times in seconds."""
    try:
        data = wrapped._get_ddp_logging_data()  # noqa: SLF001  there is no public door
    except (AttributeError, RuntimeError):  # a later PyTorch may take it away
        return {}
    # DDP starts with one order of gradients and makes its buckets again after the first step, by the real order.
    sizes = data.get("rebuilt_bucket_sizes") or data.get("bucket_sizes") or ""
    facts = {"bucket_bytes": [int(size) for size in str(sizes).split(",") if size.strip()]}
    for name, fact in TIME_FACTS.items():
        if isinstance(data.get(name), int):
            facts[fact] = data[name] * 1e-9
    return facts
