"""Hosts that are other machines, as a site. How agents get there is all in which engines differ."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.errors import SiteError
from paceline.plan.capabilities import Knob, SiteLimits
from paceline.plan.knob_values import optional_text, text
from paceline.plan.process import Host, Process, Topology
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import HostAnswer, ProcessUsage, Running, Site
from paceline.sites.processes import sweep_folder
from paceline.sites.remote.agent import GRACE_S, REAP_S, digest
from paceline.sites.remote.link import ANSWER_S, Agent, ClockOffset, in_parallel

MOST_HOSTS = 4096
"""How many there are is known when they are asked for."""
FRESH_S = 0.25
"""One answer of a host serves all of its processes."""

PYTHON = Knob(default="python3", doc="Python 3.8 or newer on every host, for the agent; it needs no packages.")
INTERFACE = Knob(
    default=None,
    type=str,
    doc="Network device that carries the exchange; by default the one by which a host is reached from here.",
)


class RemoteProcess(Running):
    """A process on another host."""

    def __init__(self, process: Process, agent: Agent, pid: int) -> None:
        self.process = process
        self._agent = agent
        self._pid = pid

    def wait(self) -> int:
        return self._agent.wait(self._pid)

    def usage(self) -> ProcessUsage | None:
        used = self._agent.fresh_usage(FRESH_S)["processes"].get(self.process.name)
        return ProcessUsage(**used) if used else None


class RemoteSite(Site):
    """What all engines have in common: agents are kept from run to run, and asked for everything."""

    traffic_scope = "hosts"

    def __init__(self) -> None:
        self._agents: list[Agent] = []
        self._launched_for: tuple[Any, ...] | None = None
        self._clocks: list[ClockOffset] = []
        self._launch_s = 0.0

    @abstractmethod
    def launch(self, cluster: ClusterChoice) -> list[Agent]:
        """Agents on so many hosts.

        Raises:
            SiteError: they cannot be had.
        """

    @abstractmethod
    def recall(self) -> None:
        """End what `launch` started besides the agents. Idempotent."""

    def engine_knobs(self) -> Mapping[str, Knob]:
        """Settings of this engine alone."""
        return {}

    def engine_facts(self) -> dict[str, Any]:
        """What the record should know of this engine alone: its version, the job it runs in …"""
        return {}

    def limits(self) -> SiteLimits:
        knobs = {**self.engine_knobs(), "python": PYTHON, "interface": INTERFACE}
        return SiteLimits(hosts=MOST_HOSTS, cores_per_host=MOST_HOSTS, knobs=knobs, refuses=self.refusal)

    def refusal(self, cluster: ClusterChoice) -> str | None:
        """Why these settings cannot work, as far as it can be told from here."""
        del cluster
        return None

    def open(self, cluster: ClusterChoice, *, ports: int) -> Topology:
        self._reach(cluster)
        agents = self._agents
        self._clocks = in_parallel(Agent.clock_offset, agents)
        hosts = []
        for one in agents:
            address, device = self._address(one, optional_text(cluster.options, "interface"))
            wanted = cluster.workers_per_host * cluster.threads_per_worker
            if wanted > len(one.about["cores"]) and not cluster.oversubscribe:
                raise SiteError(
                    f"{one.name} offers {len(one.about['cores'])} core(s), and {wanted} are asked for",
                    hint="fewer workers or threads, or: oversubscribe = true under [cluster]",
                )
            free = tuple(one.ask("ports", count=ports, address=address)["ports"])
            cores = tuple(one.about["cores"])
            hosts.append(Host(name=one.name, address=address, cores=cores, interface=device, ports=free))
        return Topology(hosts=tuple(hosts))

    def _reach(self, cluster: ClusterChoice) -> None:
        """Agents for this cluster: those of the run before where they fit and live."""
        wanted = (cluster.hosts, tuple(sorted(cluster.options.items(), key=lambda item: item[0])))
        if wanted == self._launched_for and not any(one.lost for one in self._agents):
            return
        self.leave()
        began = time.monotonic()
        self._agents = self.launch(cluster)
        self._launch_s = time.monotonic() - began
        _tell_apart(self._agents)
        self._launched_for = wanted

    @staticmethod
    def _address(one: Agent, interface: str | None) -> tuple[str, str | None]:
        if interface is None:
            return one.about["address"], one.about["interface"]
        addresses: dict[str, str] = one.about["addresses"]
        if interface not in addresses:
            raise SiteError(
                f"{one.name} has no device {interface} with an address; it has {', '.join(addresses) or 'none'}",
                hint="set interface to a device that all hosts have",
            )
        return addresses[interface], interface

    def deliver(self, paths: Sequence[Path]) -> None:
        files = [file for path in paths for file in _files_of(path)]
        # A file that was there in an earlier run, and is unchanged here, is not asked for again.
        stamps = {(str(file), file.stat().st_size, file.stat().st_mtime_ns): file for file in files}

        def bring(one: Agent) -> None:
            new = {stamp: file for stamp, file in stamps.items() if stamp not in one.delivered}
            digests = {str(file): digest(file) for file in new.values()}
            for path in one.ask("missing", digests=digests)["paths"] if digests else ():
                if path not in digests:
                    raise _distrusted(one, f"asks for {path!r}, which was not offered")
                one.put(Path(path))
            one.delivered.update(new)

        in_parallel(bring, self._agents)

    def start(self, process: Process, *, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Running:
        one = self._agents[process.host]
        started = one.ask(
            "start", name=process.name, argv=list(argv), env=dict(env), folder=str(folder), cores=list(process.cores)
        )
        return RemoteProcess(process, one, started["pid"])

    def stop(self) -> list[str]:
        def end(one: Agent) -> list[str]:
            try:
                stuck = one.ask("stop", within_s=GRACE_S + REAP_S + ANSWER_S)["stuck"]
            except SiteError:
                return []  # gone, and so is all that it started: it is tied to its agent
            return [f"{name} on {one.name}" for name in stuck]

        return [name for names in in_parallel(end, self._agents) for name in names]

    def fetch(self, folder: Path) -> None:
        def bring(one: Agent) -> None:
            if one.lost:
                return
            for name, there in one.ask("listing", folder=str(folder))["digests"].items():
                path = folder / name
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise _distrusted(one, f"names {name!r}, which lies outside of the folder of the run")
                if digest(path) != there:
                    one.get(str(path), path)

        in_parallel(bring, self._agents)

    def each_host(self, argv: Sequence[str], env: Mapping[str, str], *, within_s: float) -> list[HostAnswer]:
        def run(one: Agent) -> HostAnswer:
            told = one.ask("run", argv=list(argv), env=dict(env), timeout_s=within_s, within_s=within_s + ANSWER_S)
            return HostAnswer(host=one.name, code=told["code"], text=told["text"])

        return in_parallel(run, self._agents)

    def counters(self) -> list[dict[str, Any] | None]:
        return [None if one.lost else one.ask("counters") for one in self._agents]

    def lost_hosts(self) -> list[str]:
        return [one.name for one in self._agents if one.lost]

    def memory_bytes(self) -> list[float]:
        return [float(one.about["memory_bytes"]) for one in self._agents]

    def clock_offsets(self) -> dict[str, float]:
        return {one.name: clock.offset_s for one, clock in zip(self._agents, self._clocks, strict=True)}

    def facts(self) -> dict[str, Any]:
        hosts = []
        for one, clock in zip(self._agents, self._clocks, strict=True):
            about = {key: one.about[key] for key in ("cpu_model", "kernel", "memory_bytes", "python", "address")}
            hosts.append({"host": one.name, **about, "clock_offset_s": clock.offset_s, "clock_error_s": clock.error_s})
        return {"hosts": hosts, "launch_s": self._launch_s, "lost": self.lost_hosts(), **self.engine_facts()}

    def traffic(self) -> dict[str, int]:
        told = [one.fresh_usage(FRESH_S) for one in self._agents]
        return {key: sum(one[key] for one in told) for key in ("sent_bytes", "received_bytes")}

    def leave(self) -> None:
        agents, self._agents, self._launched_for = self._agents, [], None
        for one in agents:
            one.close()
        self.recall()

    def sweep(self, folder: Path) -> None:
        sweep_folder(folder)


def _distrusted(one: Agent, why: str) -> SiteError:
    """Of a host that names files that are none of its business: nothing of ours is read or written for it."""
    return SiteError(
        f"{one.name} {why}", hint="no agent of ours does that: look at this host before you measure on it again"
    )


def _tell_apart(agents: Sequence[Agent]) -> None:
    """Hosts that call themselves the same get a number."""
    names = [one.name for one in agents]
    for index, one in enumerate(agents):
        if names.count(one.name) > 1:
            one.name = f"{names[index]}.{names[:index].count(names[index])}"


def _files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())


def host_list(cluster: ClusterChoice) -> list[str]:
    """The hosts that the study names."""
    return [host.strip() for host in text(cluster.options, "hosts").split(",") if host.strip()]


def short_of_hosts(cluster: ClusterChoice, site: str) -> str | None:
    """Why these hosts are not enough, or None."""
    named = len(host_list(cluster))
    if named >= cluster.hosts:
        return None
    return f"{cluster.hosts} host(s) are asked for, and hosts under [cluster.{site}] names {named}"
