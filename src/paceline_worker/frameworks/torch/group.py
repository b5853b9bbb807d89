"""How PyTorch ranks find each other and wait for each other: rendezvous, process group, barrier."""

import datetime as dt
import socket

import torch
import torch.distributed as dist

TIMEOUT_S = 120
"""A collective that waits longer ends the run: enough for a peer that still compiles, not too much for a dead one."""

BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


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


_left = []


def leave():
    """Part when all ranks are here: rank 0 holds the store that the others still talk to.

    The group itself stays until the process ends. Its destructor waits for a thread of gloo's, with Python's lock held;
    if that thread is still putting away the barrier, it waits for the lock, and both wait for ever.
    """
    dist.barrier()
    _left.append(dist.group.WORLD)
    dist.destroy_process_group()


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
