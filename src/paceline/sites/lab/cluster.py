"""One emulated cluster: how it is made, measured, disturbed and taken down."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import SiteError
from paceline.sites.lab import probe
from paceline.sites.lab.cgroups import Groups
from paceline.sites.lab.delay import DelayLine
from paceline.sites.lab.layout import Layout
from paceline.sites.lab.links import DEVICE, host_script, switch_script
from paceline.sites.lab.namespaces import Namespace, hold

NO_DELAY, NETEM, DELAY_LINE = "none", "netem", "delay-line"
"""How latency is made."""
WARM_S, WINDOW_S = 0.02, 0.08
"""Warm-up and window of each measurement of a link; tens of times the burst."""
SLOW_START_TRIPS = 12
"""Round trips after which TCP has found the rate of any link we emulate."""
LEAVING_S = 2.0
"""Time for processes that were killed to leave their control groups."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Achieved:
    """What one host's link achieves."""

    sent_bytes_per_s: float
    received_bytes_per_s: float
    round_trip_s: float
    """To the next host."""


class Cluster:
    """Hosts, switch, links and control groups of one layout. If `close` is never called, they end when we do."""

    def __init__(self, layout: Layout, *, privilege: str, delay_by: str, groups: Groups | None) -> None:
        self.layout = layout
        self.delay_by = delay_by
        self.hosts: list[Namespace] = []
        self.folders: list[list[Path]] = []
        """Control groups of each host."""
        self.idle_group: Path | None = None
        """For processes that only use CPU time which the hosts leave; None: control groups cannot be written."""
        self.delay_line: DelayLine | None = None
        self._privilege = privilege
        self._groups = groups
        self._switch: Namespace | None = None

    def make(self) -> None:
        """Start the hosts and connect them.

        Raises:
            SiteError: that is not possible on this machine; what was made is removed again.
        """
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        layout = self.layout
        switch = self._switch = hold("switch", privilege=self._privilege)
        switch.wait_until_ready()
        addresses = {host.name: host.address for host in layout.hosts}
        self.hosts = [
            hold(host.name, addresses=addresses, within=switch, privilege=self._privilege) for host in layout.hosts
        ]
        for namespace in self.hosts:
            namespace.wait_until_ready()
        taps, netem = self.delay_by == DELAY_LINE, self.delay_by == NETEM
        if taps:
            self.delay_line = DelayLine(switch, self.hosts, layout.link)
        inits = [namespace.init for namespace in self.hosts]
        switch.run(switch_script(layout.hosts, inits, layout.link, layout.spine, taps=taps, netem=netem))
        for host, namespace in zip(layout.hosts, self.hosts, strict=True):
            namespace.run(host_script(host, layout.link, netem=netem))
            self.folders.append(self._groups.make(host.name, host.cores, host.quota) if self._groups else [])
        if self._groups and layout.awake:
            self.idle_group = self._groups.make_idle()

    def measure(self) -> list[Achieved]:
        """Measure bandwidth and round trip of every host's link; nothing for a host that is alone."""
        assert self._switch is not None
        if len(self.hosts) < 2:
            return []
        warm_s = max(WARM_S, SLOW_START_TRIPS * self.layout.round_trip_s)
        window_s = max(WINDOW_S, 4 * self.layout.round_trip_s)
        ends = [
            text
            for host, namespace in zip(self.layout.hosts, self.hosts, strict=True)
            for text in (str(namespace.init), host.address)
        ]
        command = [sys.executable, "-I", "-S", probe.__file__, str(warm_s), str(window_s), *ends]
        done = subprocess.run([*self._switch.enter(), *command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SiteError(f"the lab could not measure its links: {done.stderr.strip()[-300:]}")
        probed: list[probe.Probed] = json.loads(done.stdout)
        # Each host receives what the one before it sends.
        return [
            Achieved(
                sent_bytes_per_s=to_next["bytes_per_s"],
                received_bytes_per_s=from_previous["bytes_per_s"],
                round_trip_s=to_next["round_trip_s"],
            )
            for to_next, from_previous in zip(probed, [probed[-1], *probed[:-1]], strict=True)
        ]

    def cut_link(self, host: int) -> None:
        self.hosts[host].run(f"ip link set {DEVICE} down")

    def slow(self, host: int, factor: float) -> None:
        assert self._groups is not None
        slowed = self.layout.hosts[host]
        self._groups.limit(slowed.name, (slowed.quota or len(slowed.cores)) / factor)

    def kill(self, host: int) -> None:
        self.hosts[host].kill()

    def traffic(self) -> list[tuple[int, int]]:
        """(sent, received) bytes of each host's link so far; a host that is gone is left out."""
        traffic = []
        for namespace in self.hosts:
            try:
                lines = Path(f"/proc/{namespace.init}/net/dev").read_text(encoding="ascii").splitlines()
            except OSError:
                continue
            for line in lines:
                name, _, numbers = line.partition(":")
                if name.strip() == DEVICE:
                    counters = numbers.split()
                    traffic.append((int(counters[8]), int(counters[0])))
        return traffic

    def close(self) -> None:
        """End every process in it; with the last one the kernel frees devices and namespaces. Idempotent."""
        if self.delay_line:
            self.delay_line.end()
        namespaces = [*self.hosts, *([self._switch] if self._switch else [])]
        for namespace in namespaces:
            namespace.kill()
        for namespace in namespaces:
            namespace.wait_until_gone()
        self.hosts, self._switch, self.delay_line = [], None, None
        deadline = time.monotonic() + LEAVING_S
        while self._groups and not self._groups.remove() and time.monotonic() < deadline:
            time.sleep(0.01)
