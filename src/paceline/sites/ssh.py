"""Hosts that the study lists, reached with ssh."""

from __future__ import annotations

import shlex
import shutil

from paceline.plan.capabilities import Knob
from paceline.plan.knob_values import text
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import SiteState
from paceline.sites.remote.launch import agent_command, program_version, through_pipes
from paceline.sites.remote.link import in_parallel
from paceline.sites.remote.requests import Agent
from paceline.sites.remote.site import RemoteSite, host_list, short_of_hosts

OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10", "-T")
"""ssh never asks for a password in the middle of a study, and notices a dead connection within half a minute."""

KNOBS = {
    "hosts": Knob(default="", doc="Host names for ssh, separated by commas; the first ones are used."),
    "options": Knob(default="", doc="Additional options of ssh, e.g. '-p 2222 -i key'."),
}


class SshSite(RemoteSite):
    """Hosts that the study lists."""

    name = "ssh"

    def state(self) -> SiteState:
        if shutil.which("ssh"):
            return SiteState(state="ready", reason="give hosts under [cluster.ssh]; keys must need no password")
        return SiteState(state="unavailable", reason="no program ssh", fix="apt install openssh-client")

    def engine_knobs(self) -> dict[str, Knob]:
        return KNOBS

    def engine_facts(self) -> dict[str, object]:
        return {"engine": program_version(["ssh", "-V"])}

    def refusal(self, cluster: ClusterChoice) -> str | None:
        return short_of_hosts(cluster, self.name)

    def launch(self, cluster: ClusterChoice) -> list[Agent]:
        # On the other side a shell reads the command.
        command = shlex.join(agent_command(text(cluster.options, "python")))
        options = [*OPTIONS, *shlex.split(text(cluster.options, "options"))]

        def reach(host: str) -> Agent:
            return through_pipes(["ssh", *options, "--", host, command], f"ssh {host}")

        return in_parallel(reach, host_list(cluster)[: cluster.hosts])

    def recall(self) -> None:
        """Nothing to do: each ssh ends with its agent."""
