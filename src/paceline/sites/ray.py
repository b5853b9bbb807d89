"""Nodes of a Ray cluster: a placement group is spread over them, and an agent is started in each bundle."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from paceline.errors import SiteError
from paceline.plan.capabilities import Knob
from paceline.plan.knob_values import integer, text
from paceline.plan.trial import ClusterChoice
from paceline.sites import ray_driver
from paceline.sites.base import SiteState
from paceline.sites.remote.called import CalledSite
from paceline.sites.remote.launch import agent_command

KNOBS = {
    "address": Knob(
        default="auto", doc="Address of the running cluster, as for ray.init; 'local': start one on this machine."
    ),
    "ray_python": Knob(default="python3", doc="A Python on this machine with the cluster's version of Ray."),
    "cpus": Knob(default=0, minimum=0, doc="CPUs per bundle; 0: as many as the workers of a host have threads."),
}


class RaySite(CalledSite):
    """Nodes of a Ray cluster."""

    name = "ray"

    def state(self) -> SiteState:
        if shutil.which("ray"):
            return SiteState(state="ready", reason="needs a running cluster: ray start")
        return SiteState(
            state="unavailable",
            reason="no program ray on the search path",
            fix="pip install ray==VERSION of your cluster, and name that Python: ray_python under [cluster.ray]",
        )

    def engine_knobs(self) -> dict[str, Knob]:
        return KNOBS

    def engine_facts(self) -> dict[str, object]:
        return {"engine": next((line for line in self.last_words().split(" / ") if line.startswith("Ray ")), "Ray")}

    def start_agents(self, cluster: ClusterChoice, variables: dict[str, str]) -> subprocess.Popen[bytes]:
        options = cluster.options
        python = shutil.which(text(options, "ray_python"))
        if python is None:
            raise SiteError(f"no program {options['ray_python']}", hint="set ray_python under [cluster.ray]")
        asked: ray_driver.Asked = {
            "address": text(options, "address"),
            "hosts": cluster.hosts,
            "variables": variables,
            "cpus": integer(options, "cpus") or cluster.workers_per_host * cluster.threads_per_worker,
            "command": agent_command(text(options, "python")),
        }
        # In a variable and not in the command line, which everybody on this machine can read.
        # Isolated (-I), because the folder of the driver has a module called ray.
        return self.spawn([python, "-I", "-u", str(Path(ray_driver.__file__))], {ray_driver.ASKED: json.dumps(asked)})
