"""Nodes of a Ray cluster: a placement group spread over them, an agent in each bundle."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from paceline.errors import SiteError
from paceline.plan.capabilities import Knob
from paceline.plan.knob_values import text
from paceline.plan.trial import ClusterChoice
from paceline.sites import ray_driver
from paceline.sites.base import SiteState
from paceline.sites.remote.called import CalledSite
from paceline.sites.remote.launch import agent_command

KNOBS = {
    "address": Knob(
        default="auto", doc="The running cluster as ray.init takes it; 'local': one is started on this machine."
    ),
    "ray_python": Knob(default="python3", doc="A Python here that has the cluster's version of Ray."),
    "cpus": Knob(default=0, minimum=0, doc="CPUs of a bundle; 0: as many as a host's workers have threads."),
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

    def engine_facts(self) -> dict[str, Any]:
        return {"engine": next((line for line in self.last_words().split(" / ") if line.startswith("Ray ")), "Ray")}

    def start_agents(self, cluster: ClusterChoice, variables: dict[str, str]) -> subprocess.Popen[bytes]:
        options = cluster.options
        python = shutil.which(text(options, "ray_python"))
        if python is None:
            raise SiteError(f"no program {options['ray_python']}", hint="set ray_python under [cluster.ray]")
        asked = {
            "address": options["address"],
            "hosts": cluster.hosts,
            "variables": variables,
            "cpus": options["cpus"] or cluster.workers_per_host * cluster.threads_per_worker,
            "command": agent_command(text(options, "python")),
        }
        # By a variable, not by the command line, which everybody on this machine can read.
        # Isolated: its own folder has a module called ray.
        return self.spawn([python, "-I", "-u", str(Path(ray_driver.__file__))], {ray_driver.ASKED: json.dumps(asked)})
