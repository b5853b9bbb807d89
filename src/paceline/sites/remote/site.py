"""Hosts that are other machines, as a site. The engines only differ in how they bring agents to the hosts."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from paceline.errors import SiteError
from paceline.plan.capabilities import Knob, SiteLimits
from paceline.plan.knob_values import KnobValue, optional_text, text
from paceline.plan.process import Host, Process, Topology
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import BusyCounter, HostAnswer, ProcessUsage, Running, Site
from paceline.sites.processes import sweep_folder
from paceline.sites.remote.agent.files import digest
from paceline.sites.remote.link import in_parallel
from paceline.sites.remote.requests import Agent, ClockOffset

MOST_HOSTS = 4096
"""Only the engine knows how many hosts there are, and tells when they are asked for."""
FRESH_S = 0.25
"""How long an answer about usage is good for: one answer of a host serves all of its processes."""

PYTHON = Knob(default="python3", doc="Python 3.8 or newer on every host, for the agent; it needs no packages.")
INTERFACE = Knob(
    default=None,
    type=str,
    doc="Network interface for the exchange; by default the one through which the host is reached from this machine.",
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
        return self._agent.fresh_usage(FRESH_S).processes.get(self.process.name)


class RemoteSite(Site):
    """What all engines have in common: agents stay from run to run, and everything is asked of them."""

    traffic_scope = "hosts"

    def __init__(self) -> None:
        self._agents: list[Agent] = []
        self._launched_for: tuple[int, dict[str, KnobValue]] | None = None
        self._clocks: list[ClockOffset] = []
        self._launch_s = 0.0

    @abstractmethod
    def launch(self, cluster: ClusterChoice) -> list[Agent]:
        """Start an agent on each of so many hosts.

        Raises:
            SiteError: they cannot be started.
        """

    @abstractmethod
    def recall(self) -> None:
        """End what `launch` started besides the agents. Idempotent."""

    def engine_knobs(self) -> Mapping[str, Knob]:
        """Settings of this engine alone."""
        return {}

    def engine_facts(self) -> dict[str, object]:
        """What the record should tell of this engine alone: its version, the job it runs in …"""
        return {}

    def limits(self) -> SiteLimits:
        knobs = {**self.engine_knobs(), "python": PYTHON, "interface": INTERFACE}
        return SiteLimits(hosts=MOST_HOSTS, cores_per_host=MOST_HOSTS, knobs=knobs, refuses=self.refusal)

    def refusal(self, cluster: ClusterChoice) -> str | None:
        """Why these settings cannot work, as far as this machine can tell; None: they may."""
        del cluster
        return None

    def open(self, cluster: ClusterChoice, *, ports: int) -> Topology:
        self._reach(cluster)
        agents = self._agents
        self._clocks = in_parallel(Agent.clock_offset, agents)
        hosts = []
        for agent in agents:
            address, device = self._address(agent, optional_text(cluster.options, "interface"))
            wanted, cores = cluster.workers_per_host * cluster.threads_per_worker, agent.about.cores
            if wanted > len(cores) and not cluster.oversubscribe:
                raise SiteError(
                    f"{agent.name} offers {len(cores)} core(s), and {wanted} are asked for",
                    hint="fewer workers or threads, or: oversubscribe = true under [cluster]",
                )
            free = agent.free_ports(ports, address)
            hosts.append(Host(name=agent.name, address=address, cores=cores, interface=device, ports=free))
        return Topology(hosts=tuple(hosts))

    def _reach(self, cluster: ClusterChoice) -> None:
        """Have agents for this cluster: those of the run before, where they fit and are all alive."""
        wanted = (cluster.hosts, dict(cluster.options))
        if wanted == self._launched_for and not any(agent.lost for agent in self._agents):
            return
        self.leave()
        began = time.monotonic()
        self._agents = self.launch(cluster)
        self._launch_s = time.monotonic() - began
        _tell_apart(self._agents)
        self._launched_for = wanted

    @staticmethod
    def _address(agent: Agent, interface: str | None) -> tuple[str, str | None]:
        if interface is None:
            return agent.about.address, agent.about.interface
        addresses = agent.about.addresses
        if interface not in addresses:
            raise SiteError(
                f"{agent.name} has no device {interface} with an address; it has {', '.join(addresses) or 'none'}",
                hint="set interface to a device that all hosts have",
            )
        return addresses[interface], interface

    def deliver(self, paths: Sequence[Path]) -> None:
        files = [file for path in paths for file in _files_of(path)]
        # A host is not asked again for a file that an earlier run brought there and that has not changed here since.
        stamps = {(str(file), file.stat().st_size, file.stat().st_mtime_ns): file for file in files}

        def bring(agent: Agent) -> None:
            new = {stamp: file for stamp, file in stamps.items() if stamp not in agent.delivered}
            digests = {str(file): digest(file) for file in new.values()}
            for path in agent.missing(digests) if digests else ():
                if path not in digests:
                    raise _distrusted(agent, f"asks for {path!r}, which was not offered")
                agent.put(Path(path))
            agent.delivered.update(new)

        in_parallel(bring, self._agents)

    def start(self, process: Process, *, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> Running:
        agent = self._agents[process.host]
        return RemoteProcess(process, agent, agent.start(process.name, argv, env, folder, process.cores))

    def stop(self) -> list[str]:
        def end(agent: Agent) -> list[str]:
            try:
                stuck = agent.stop()
            except SiteError:
                return []  # The agent is gone, and so is all that it started, which is tied to it.
            return [f"{name} on {agent.name}" for name in stuck]

        return [name for names in in_parallel(end, self._agents) for name in names]

    def fetch(self, folder: Path) -> None:
        def bring(agent: Agent) -> None:
            if agent.lost:
                return
            for name, digest_there in agent.listing(folder).items():
                path = folder / name
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise _distrusted(agent, f"names {name!r}, which lies outside of the folder of the run")
                if digest(path) != digest_there:
                    agent.get(str(path), path)

        in_parallel(bring, self._agents)

    def each_host(self, argv: Sequence[str], env: Mapping[str, str], *, within_s: float) -> list[HostAnswer]:
        return in_parallel(lambda agent: agent.run(argv, env, within_s=within_s), self._agents)

    def counters(self) -> list[BusyCounter | None]:
        return [None if agent.lost else agent.counters() for agent in self._agents]

    def lost_hosts(self) -> list[str]:
        return [agent.name for agent in self._agents if agent.lost]

    def memory_bytes(self) -> list[float]:
        return [float(agent.about.memory_bytes) for agent in self._agents]

    def clock_offsets(self) -> dict[str, float]:
        return {agent.name: clock.offset_s for agent, clock in zip(self._agents, self._clocks, strict=True)}

    def facts(self) -> dict[str, object]:
        hosts = [
            {
                "host": agent.name,
                "cpu_model": agent.about.cpu_model,
                "kernel": agent.about.kernel,
                "memory_bytes": agent.about.memory_bytes,
                "python": agent.about.python,
                "address": agent.about.address,
                "clock_offset_s": clock.offset_s,
                "clock_error_s": clock.error_s,
            }
            for agent, clock in zip(self._agents, self._clocks, strict=True)
        ]
        return {"hosts": hosts, "launch_s": self._launch_s, "lost": self.lost_hosts(), **self.engine_facts()}

    def traffic(self) -> dict[str, int]:
        usages = [agent.fresh_usage(FRESH_S) for agent in self._agents]
        return {
            "sent_bytes": sum(usage.sent_bytes for usage in usages),
            "received_bytes": sum(usage.received_bytes for usage in usages),
        }

    def leave(self) -> None:
        agents, self._agents, self._launched_for = self._agents, [], None
        for agent in agents:
            agent.close()
        self.recall()

    def sweep(self, folder: Path) -> None:
        sweep_folder(folder)


def _distrusted(agent: Agent, why: str) -> SiteError:
    """The error about a host that names files which are none of its business; nothing is read or written for it."""
    return SiteError(
        f"{agent.name} {why}", hint="no agent of ours does that: look at this host before you measure on it again"
    )


def _tell_apart(agents: Sequence[Agent]) -> None:
    """Give a number to hosts that have the same name."""
    names = [agent.name for agent in agents]
    for index, agent in enumerate(agents):
        if names.count(agent.name) > 1:
            agent.name = f"{names[index]}.{names[:index].count(names[index])}"


def _files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(entry for entry in path.rglob("*") if entry.is_file())


def host_list(cluster: ClusterChoice) -> list[str]:
    """The hosts that the study names."""
    return [host.strip() for host in text(cluster.options, "hosts").split(",") if host.strip()]


def short_of_hosts(cluster: ClusterChoice, site: str) -> str | None:
    """Why the hosts that the study names are not enough, or None."""
    named = len(host_list(cluster))
    if named >= cluster.hosts:
        return None
    return f"{cluster.hosts} host(s) are asked for, and hosts under [cluster.{site}] names {named}"
