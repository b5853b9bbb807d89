"""Hosts that mpirun reaches (OpenMPI, MPICH and derivatives): one MPI job with one agent per host."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

from paceline.errors import SiteError
from paceline.plan.capabilities import Knob
from paceline.plan.knob_values import text
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import SiteState
from paceline.sites.remote.agent.channel import HOME, KEY
from paceline.sites.remote.called import CalledSite
from paceline.sites.remote.launch import agent_command, program_version
from paceline.sites.remote.site import host_list, short_of_hosts

OPEN_MPI = "Open MPI"

KNOBS = {
    "hosts": Knob(default="", doc="Host names for mpirun, separated by commas; empty: those of a hostfile."),
    "hostfile": Knob(default="", doc="File of hosts for mpirun, if `hosts` is empty; both empty: its allocation."),
    "mpirun": Knob(default="mpirun", doc="The program that starts MPI jobs."),
    "options": Knob(default="", doc="Additional options of mpirun."),
}


class MpiSite(CalledSite):
    """Hosts that mpirun reaches."""

    name = "mpi"

    def state(self) -> SiteState:
        if shutil.which("mpirun"):
            return SiteState(state="ready", reason=program_version(["mpirun", "--version"]))
        return SiteState(state="unavailable", reason="no program mpirun", fix="apt install openmpi-bin   or mpich")

    def engine_knobs(self) -> dict[str, Knob]:
        return KNOBS

    def engine_facts(self) -> dict[str, object]:
        return {"engine": program_version([self._mpirun, "--version"]) if self._mpirun else None}

    def refusal(self, cluster: ClusterChoice) -> str | None:
        return short_of_hosts(cluster, self.name) if cluster.options["hosts"] else None

    def __init__(self) -> None:
        super().__init__()
        self._mpirun = ""

    def start_agents(self, cluster: ClusterChoice, variables: dict[str, str]) -> subprocess.Popen[bytes]:
        self._mpirun = text(cluster.options, "mpirun")
        if not shutil.which(self._mpirun):
            raise SiteError(f"no program {self._mpirun}", hint="apt install openmpi-bin   or mpich")
        is_open_mpi = OPEN_MPI in program_version([self._mpirun, "--version"])
        command = mpirun_command(cluster, is_open_mpi=is_open_mpi, is_root=os.geteuid() == 0)
        return self.spawn(command, variables)


def mpirun_command(cluster: ClusterChoice, *, is_open_mpi: bool, is_root: bool) -> list[str]:
    """Start one agent per host, bound to no core, so that its processes may use all.

    The variables are passed on by name: their values must not stand in a command line that everybody can read.
    """
    options, count = cluster.options, str(cluster.hosts)
    hosts = ",".join(host_list(cluster)[: cluster.hosts])
    hostfile = text(options, "hostfile")
    if is_open_mpi:
        where = ["--host", hosts] if hosts else ["--hostfile", hostfile] if hostfile else []
        how = ["--np", count, "--map-by", "ppr:1:node", "--bind-to", "none", "-x", HOME, "-x", KEY]
        how += ["--allow-run-as-root"] if is_root else []
    else:
        where = ["-hosts", hosts] if hosts else ["-f", hostfile] if hostfile else []
        how = ["-n", count, "-ppn", "1", "-bind-to", "none", "-genvlist", f"{HOME},{KEY}"]
    further = shlex.split(text(options, "options"))
    return [text(options, "mpirun"), *how, *where, *further, *agent_command(text(options, "python"))]
