"""Hosts of a list, reached by ssh."""

from __future__ import annotations

import shlex
import shutil
from typing import Any

from paceline.plan.capabilities import Knob
from paceline.plan.knob_values import text
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import SiteState
from paceline.sites.remote.launch import agent_command, program_version, through_pipes
from paceline.sites.remote.link import Agent, in_parallel
from paceline.sites.remote.site import RemoteSite, host_list, short_of_hosts

OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10", "-T")
"""Never ask for a password in the middle of a study; notice a dead connection within half a minute."""

KNOBS = {
    "hosts": Knob(default="", doc="Hosts as ssh knows them, separated by commas; the first ones are used."),
    "options": Knob(default="", doc="Additional options of ssh, e.g. '-p 2222 -i key'."),
}


class SshSite(RemoteSite):
    """Hosts of a list."""

    name = "ssh"

    def state(self) -> SiteState:
        if shutil.which("ssh"):
            return SiteState(state="ready", reason="give hosts under [cluster.ssh]; keys must need no password")
        return SiteState(state="unavailable", reason="no program ssh", fix="apt install openssh-client")

    def engine_knobs(self) -> dict[str, Knob]:
        return KNOBS

    def engine_facts(self) -> dict[str, Any]:
        return {"engine": program_version(["ssh", "-V"])}

    def refusal(self, cluster: ClusterChoice) -> str | None:
        return short_of_hosts(cluster, self.name)

    def launch(self, cluster: ClusterChoice) -> list[Agent]:
        # The other side hands the words to a shell.
        command = shlex.join(agent_command(text(cluster.options, "python")))
        options = [*OPTIONS, *shlex.split(text(cluster.options, "options"))]

        def reach(host: str) -> Agent:
            return through_pipes(["ssh", *options, "--", host, command], f"ssh {host}")

        return in_parallel(reach, host_list(cluster)[: cluster.hosts])

    def recall(self) -> None:
        """Each ssh ends with its agent."""
