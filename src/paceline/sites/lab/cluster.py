"""One emulated cluster, made and taken down."""

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
"""Of each measurement of a link; tens of times the burst."""
SLOW_START_TRIPS = 12
"""Round trips after which TCP has found the rate of any link we emulate."""
LEAVING_S = 2.0
"""Time for killed processes to leave their control groups."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Achieved:
    """What passes over one host's link."""

    sent_bytes_per_s: float
    received_bytes_per_s: float
    round_trip_s: float
    """To the next host."""


class Cluster:
    """Hosts, switch, links and groups of one layout. Made by `make`, ended by `close`; dies with us otherwise."""

    def __init__(self, layout: Layout, *, privilege: str, delay_by: str, groups: Groups | None) -> None:
        self.layout = layout
        self.delay_by = delay_by
        self.hosts: list[Namespace] = []
        self.folders: list[list[Path]] = []
        """Control groups of each host."""
        self.idle_group: Path | None = None
        """For what may only use what the hosts leave; None: control groups cannot be written."""
        self.delay_line: DelayLine | None = None
        self._privilege = privilege
        self._groups = groups
        self._switch: Namespace | None = None

    def make(self) -> None:
        """Start and join everything.

        Raises:
            SiteError: the machine would not; what was made is gone again.
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
        """Bandwidth and round trip of every host's link; nothing for a host that is alone."""
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
        found = json.loads(done.stdout)
        return [
            Achieved(
                sent_bytes_per_s=one["bytes_per_s"],
                received_bytes_per_s=before["bytes_per_s"],
                round_trip_s=one["round_trip_s"],
            )
            for one, before in zip(found, [found[-1], *found[:-1]], strict=True)
        ]

    def cut_link(self, host: int) -> None:
        self.hosts[host].run(f"ip link set {DEVICE} down")

    def slow(self, host: int, factor: float) -> None:
        assert self._groups is not None
        one = self.layout.hosts[host]
        self._groups.limit(one.name, (one.quota or len(one.cores)) / factor)

    def kill(self, host: int) -> None:
        self.hosts[host].kill()

    def traffic(self) -> list[tuple[int, int]]:
        """(sent, received) bytes of each host's link so far; none for a host that is gone."""
        found = []
        for namespace in self.hosts:
            try:
                lines = Path(f"/proc/{namespace.init}/net/dev").read_text(encoding="ascii").splitlines()
            except OSError:
                continue
            for line in lines:
                name, _, numbers = line.partition(":")
                if name.strip() == DEVICE:
                    counters = numbers.split()
                    found.append((int(counters[8]), int(counters[0])))
        return found

    def close(self) -> None:
        """End every process in it; the kernel frees devices and namespaces with the last one. Idempotent."""
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
