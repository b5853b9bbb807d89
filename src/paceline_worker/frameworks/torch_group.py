"""How PyTorch ranks find each other and share gradients: rendezvous, process group, DistributedDataParallel."""

import datetime as dt
import inspect
import socket
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

TIMEOUT_S = 120
"""A collective that waits longer ends the run: enough for a peer that still compiles, not too much for a dead one."""

BACKENDS = {"cpu": "gloo", "cuda": "nccl"}

MIB = 2**20
"""PyTorch's `bucket_cap_mb` counts in these."""


def join(job):
    """Meet the other ranks and form the process group; rank 0 opens the rendezvous.

    Raises:
        OSError: "Address already in use": another process has the port.
    """
    address, port = job.rendezvous["address"], job.rendezvous["ports"][0]
    timeout = dt.timedelta(seconds=TIMEOUT_S)
    listening = None
    if job.rank == 0:
        # Our own socket, so that only the given address listens, and a taken port says so in the system's words.
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((address, port), family=family, backlog=max(128, 2 * job.world_size))
    store = dist.TCPStore(
        address,
        port,
        world_size=job.world_size,
        is_master=job.rank == 0,
        timeout=timeout,
        master_listen_fd=None if listening is None else listening.detach(),
    )
    dist.init_process_group(
        BACKENDS[job.device], store=store, rank=job.rank, world_size=job.world_size, timeout=timeout
    )


def leave():
    """Part when all ranks are here: rank 0 holds the store that the others still talk to."""
    dist.barrier()
    dist.destroy_process_group()


def wrap(job, net, device):
    """The model in DistributedDataParallel, as the knobs say."""
    knobs = job.knobs
    options = {}
    if not knobs["overlap"]:
        # One bucket is full, and its all-reduce starts, only when the last gradient is ready: nothing overlaps.
        options["bucket_cap_mb"] = sys.maxsize // MIB
    elif knobs["bucket_bytes"] is not None:
        options["bucket_cap_mb"] = knobs["bucket_bytes"] / MIB
    # Left out, `bucket_cap_mb` also makes a small first bucket, which 25 given explicitly does not.
    known = inspect.signature(DistributedDataParallel).parameters
    options["forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"] = knobs["sync_buffers"]
    return DistributedDataParallel(
        net,
        device_ids=[device.index] if device.type == "cuda" else None,
        gradient_as_bucket_view=knobs["gradient_as_bucket_view"],
        **options,
    )


def exchange_facts(wrapped):
    """What DDP says of its buckets and its own (sampled) times; times in seconds."""
    try:
        data = wrapped._get_ddp_logging_data()  # noqa: SLF001  there is no public door
    except (AttributeError, RuntimeError):  # a later PyTorch may take it away
        return {}
    # DDP starts with one order of gradients and makes its buckets again after the first step, by the real order.
    sizes = data.get("rebuilt_bucket_sizes") or data.get("bucket_sizes") or ""
    facts = {"bucket_bytes": [int(size) for size in str(sizes).split(",") if size.strip()]}
    for name in (
        "avg_forward_compute_time", "avg_backward_compute_time", "avg_backward_comm_time",
        "avg_backward_compute_comm_overlap_time",
    ):  # fmt: skip
        if isinstance(data.get(name), int):
            facts["ddp_{}_s".format(name[: -len("_time")])] = data[name] * 1e-9
    return facts


def synchronizer(job, device):
    """A function that returns when all ranks are there and the device is idle."""
    if device.type == "cuda":

        def synchronize():
            torch.cuda.synchronize(device)
            if dist.is_initialized():
                dist.barrier(device_ids=[device.index])
                torch.cuda.synchronize(device)

        return synchronize
    return dist.barrier if job.world_size > 1 else lambda: None
