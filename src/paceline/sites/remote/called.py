"""Engines whose own program starts the agents (mpirun, srun, sbatch, a Ray driver), which then call us."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import IO

from paceline.plan.trial import ClusterChoice
from paceline.sites.processes import tethered
from paceline.sites.remote.launch import Home
from paceline.sites.remote.requests import Agent
from paceline.sites.remote.site import RemoteSite

WITHIN_S = 120.0
"""Time for all agents to call once the program that starts them runs."""
LEAVING_S = 20.0
"""Time for that program to end: after its agents have, after SIGTERM, and after SIGKILL."""


class CalledSite(RemoteSite):
    """An engine whose own program starts the agents."""

    within_s: float = WITHIN_S

    def __init__(self) -> None:
        super().__init__()
        self._program: subprocess.Popen[bytes] | None = None
        self._program_output: IO[bytes] | None = None

    @abstractmethod
    def start_agents(self, cluster: ClusterChoice, variables: dict[str, str]) -> subprocess.Popen[bytes] | None:
        """Start the engine's program, unless it runs elsewhere; its agents have to find these variables.

        Raises:
            SiteError: it cannot be started.
        """

    def launch(self, cluster: ClusterChoice) -> list[Agent]:
        home = Home()
        try:
            self._program = self.start_agents(cluster, home.variables())
            return home.welcome(cluster.hosts, within_s=self.within_s, dead=self.why_dead)
        except BaseException:
            self.recall()
            raise
        finally:
            home.close()

    def spawn(self, command: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """Start a program tied to us, with these variables beside ours."""
        if self._program_output is None:
            self._program_output = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the site
        self._program_output.seek(0)
        self._program_output.truncate()
        return subprocess.Popen(
            tethered(command),
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=self._program_output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def why_dead(self) -> str | None:
        """Why no more agents will call, or None."""
        if self._program is None or self._program.poll() is None:
            return None
        return f"{self.name} ended with {self._program.returncode}: {self.last_words()}"

    def last_words(self) -> str:
        """The end of what the program printed."""
        if self._program_output is None:
            return "no message"
        self._program_output.seek(0)
        lines = self._program_output.read().decode(errors="replace").strip().splitlines()
        return " / ".join(line.strip() for line in lines[-4:] if line.strip()) or "no message"

    def recall(self) -> None:
        program, self._program = self._program, None
        if program is None:
            return
        # It ends by itself when its agents have ended; one that does not gets SIGTERM, then SIGKILL.
        for force in (None, signal.SIGTERM, signal.SIGKILL):
            if force is not None:
                program.send_signal(force)
            try:
                program.wait(LEAVING_S)
            except subprocess.TimeoutExpired:
                continue
            return
