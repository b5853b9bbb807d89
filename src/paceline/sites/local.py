"""This machine as a site: one host, with ranks pinned to its cores."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from paceline.errors import SiteError
from paceline.plan.capabilities import SiteLimits
from paceline.plan.process import Host, Process, Topology
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import Site, SiteState
from paceline.sites.processes import LocalProcess, Processes, sweep_folder, tethered
from paceline.sites.remote.agent.cores import usable_cores
from paceline.sites.remote.agent.ports import free_ports

LOOPBACK = "127.0.0.1"
LEAST_WORKER_BYTES = 16 * 2**20
"""Memory of the smallest worker, which draws its times from a law: an interpreter and little else."""


class LocalSite(Site):
    """This machine as the only host."""

    name = "local"

    def __init__(self) -> None:
        self._processes = Processes()

    def state(self) -> SiteState:
        return SiteState(state="ready")

    def limits(self) -> SiteLimits:
        return SiteLimits(
            hosts=1,
            cores_per_host=len(usable_cores()),
            workers_per_host=most_workers(),
            devices={"cuda": cuda_devices()},
        )

    def open(self, cluster: ClusterChoice, *, ports: int) -> Topology:
        if cluster.hosts != 1:
            raise SiteError("site local has one host", hint="set cluster.hosts = 1")
        cores, free = usable_cores(), tuple(free_ports(ports, LOOPBACK))
        return Topology(hosts=(Host(name="localhost", address=LOOPBACK, cores=cores, interface="lo", ports=free),))

    def start(self, process: Process, *, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> LocalProcess:
        command = tethered(argv, cores=process.cores)
        return self._processes.start(process, command, env=env, folder=folder)

    def stop(self) -> list[str]:
        return self._processes.stop()

    def sweep(self, folder: Path) -> None:
        sweep_folder(folder)


def most_workers() -> int:
    """Workers that this machine can hold at once, by its memory and by the limits of the kernel and of the user."""
    limits = [psutil.virtual_memory().total // LEAST_WORKER_BYTES]
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    limits += [soft] if soft != resource.RLIM_INFINITY else []
    for name in ("pid_max", "threads-max"):
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(Path(f"/proc/sys/kernel/{name}").read_text(encoding="ascii")))
    return max(1, min(limits))


def cuda_devices() -> int:
    """CUDA devices that a process started here would see: those of the driver that CUDA_VISIBLE_DEVICES leaves."""
    folder = Path("/proc/driver/nvidia/gpus")
    installed = len(list(folder.iterdir())) if folder.is_dir() else 0
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return (
        installed if visible is None else min(installed, len([index for index in visible.split(",") if index.strip()]))
    )
