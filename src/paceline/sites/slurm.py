"""Nodes of a Slurm cluster: those of our allocation, with srun, or else of a job that is submitted with sbatch."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

from paceline.errors import SiteError
from paceline.plan.capabilities import Knob
from paceline.plan.knob_values import text
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import SiteState
from paceline.sites.remote.called import CalledSite
from paceline.sites.remote.launch import agent_command, program_version

IN_QUEUE_S = 7 * 24 * 3600.0
"""How long a submitted job may wait for its nodes."""
ASK_AGAIN_S = 5.0
"""How often to ask Slurm for the state of the job."""
WAITING = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED"}
"""States of a job whose agents can still call."""

KNOBS = {
    "partition": Knob(default="", doc="Partition to submit to; empty: the cluster's default."),
    "time_limit": Knob(default="", doc="Time limit of the submitted job, in sbatch's format, e.g. '2:00:00'."),
    "gpus_per_node": Knob(default=0, minimum=0, doc="GPUs to request on each node."),
    "options": Knob(default="", doc="Additional options of sbatch (or of srun, inside an allocation)."),
}


class SlurmSite(CalledSite):
    """Nodes of a Slurm cluster."""

    name = "slurm"

    def __init__(self) -> None:
        super().__init__()
        self._job: str | None = None
        self._job_output: Path | None = None
        self._asked = 0.0

    def state(self) -> SiteState:
        if not shutil.which("srun"):
            return SiteState(state="unavailable", reason="no program srun", fix="apt install slurm-client")
        version = program_version(["srun", "--version"])
        if not version:
            return SiteState(
                state="unavailable",
                reason="srun finds no cluster",
                fix="call Paceline on a node of the cluster, or set SLURM_CONF to its slurm.conf",
            )
        where = "in an allocation" if allocation() else "will submit with sbatch"
        return SiteState(state="ready", reason=f"{version}, {where}")

    def engine_knobs(self) -> dict[str, Knob]:
        return KNOBS

    def engine_facts(self) -> dict[str, object]:
        version = program_version(["srun", "--version"])
        return {"engine": version, "job": self._job or allocation(), "submitted": self._job is not None}

    def refusal(self, cluster: ClusterChoice) -> str | None:
        nodes = os.environ.get("SLURM_JOB_NUM_NODES")
        if allocation() and nodes and int(nodes) < cluster.hosts:
            return f"this allocation has {nodes} node(s), and {cluster.hosts} are asked for"
        return None

    def start_agents(self, cluster: ClusterChoice, variables: dict[str, str]) -> subprocess.Popen[bytes] | None:
        if allocation():
            return self.spawn(srun_command(cluster, inside=True), variables)
        self._submit(cluster, variables)
        return None

    def _submit(self, cluster: ClusterChoice, variables: dict[str, str]) -> None:
        """Submit a job that holds the nodes for the whole study; `recall` ends it."""
        self._job_output = Path.cwd() / f"paceline-slurm-{os.getpid()}.log"
        command = sbatch_command(cluster, self._job_output)
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SiteError(f"sbatch: {(done.stderr or done.stdout).strip()}")
        self._job = done.stdout.strip().split(";")[0]
        # The queue decides when the job starts.
        self.within_s = IN_QUEUE_S

    def why_dead(self) -> str | None:
        if self._job is None:
            return super().why_dead()
        if time.monotonic() - self._asked < ASK_AGAIN_S:
            return None
        self._asked = time.monotonic()
        asked = subprocess.run(
            ["squeue", "--noheader", "--jobs", self._job, "--format", "%T"], capture_output=True, text=True, check=False
        )
        state = asked.stdout.strip()
        return None if state in WAITING else f"Slurm job {self._job} ended: {self.last_words()}"

    def last_words(self) -> str:
        if self._job_output is None or not self._job_output.exists():
            return super().last_words()
        lines = self._job_output.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " / ".join(lines[-4:]) or "no message"

    def recall(self) -> None:
        super().recall()
        job, self._job = self._job, None
        if job is not None:
            subprocess.run(["scancel", job], capture_output=True, check=False)
        if self._job_output is not None:
            self._job_output.unlink(missing_ok=True)
            self._job_output = None


def allocation() -> str | None:
    """The id of the job whose nodes we may use, if we run inside one."""
    return os.environ.get("SLURM_JOB_ID")


def srun_command(cluster: ClusterChoice, *, inside: bool) -> list[str]:
    """Start one agent per node. It may use all cores that the job has there, beside other steps of the job."""
    count = str(cluster.hosts)
    further = shlex.split(text(cluster.options, "options")) if inside else []
    how = ["--nodes", count, "--ntasks", count, "--ntasks-per-node", "1", "--cpu-bind", "none", "--overlap"]
    return ["srun", *how, "--kill-on-bad-exit=0", *further, *agent_command(text(cluster.options, "python"))]


def sbatch_command(cluster: ClusterChoice, output: Path) -> list[str]:
    """Submit a job that only runs the agents."""
    options, count = cluster.options, str(cluster.hosts)
    cores = str(cluster.workers_per_host * cluster.threads_per_worker)
    command = ["sbatch", "--parsable", "--job-name", "paceline", "--nodes", count, "--ntasks-per-node", "1"]
    command += ["--cpus-per-task", cores, "--output", str(output), "--export", "ALL"]
    command += ["--partition", text(options, "partition")] if options["partition"] else []
    command += ["--time", text(options, "time_limit")] if options["time_limit"] else []
    command += ["--gpus-per-node", str(options["gpus_per_node"])] if options["gpus_per_node"] else []
    return [*command, *shlex.split(text(options, "options")), "--wrap", shlex.join(srun_command(cluster, inside=False))]
