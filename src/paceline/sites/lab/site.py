"""Several emulated hosts on this machine as a site."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import psutil

from paceline.errors import SiteError
from paceline.plan.capabilities import Knob, SiteLimits
from paceline.plan.process import Host, Process, Topology
from paceline.plan.trial import ClusterChoice
from paceline.sites.base import Site, SiteState
from paceline.sites.lab import cgroups
from paceline.sites.lab.awake import Awake
from paceline.sites.lab.ceiling import known_ceiling, measured_ceiling
from paceline.sites.lab.cluster import DELAY_LINE, NETEM, NO_DELAY, Achieved, Cluster
from paceline.sites.lab.delay import lack_of_delay_line
from paceline.sites.lab.faults import FORMS, NONE
from paceline.sites.lab.layout import MOST_HOSTS, TOPOLOGIES, LabLink, Layout, layout_of, refusal
from paceline.sites.lab.links import DEVICE
from paceline.sites.lab.namespaces import AS_ROOT, has_netem, missing_programs, privilege
from paceline.sites.local import most_workers
from paceline.sites.processes import LocalProcess, Processes, sweep_folder, tethered
from paceline.sites.remote.agent.cores import usable_cores
from paceline.sites.remote.agent.ports import FIRST_PORT
from paceline.units import BYTES_PER_SECOND

MORE_TRIES = 2
"""Further measurements of a link that is not as asked: another program can make it look slower than it is."""
OFF = 0.10
"""How far a link may be from what was asked, relative to that."""
NOT_DILATED = "caches and memory bandwidth are not dilated: hosts share them as they do without dilation"

KNOBS = {
    "core_share": Knob(default=1.0, minimum=0.01, maximum=1.0, doc="Share of each of its cores that a host gets."),
    "dilation": Knob(
        default=1.0,
        minimum=1.0,
        maximum=100.0,
        doc="Slow motion by a factor k: share ÷ k, bandwidth ÷ k, latency × k, so that more hosts fit.",
    ),
    "topology": Knob(default="switch", choices=TOPOLOGIES, doc="One switch, or two racks joined by a spine."),
    "spine_bandwidth": Knob(
        default=None,
        type=float,
        units=BYTES_PER_SECOND,
        minimum=1.0,
        doc="Bandwidth between the two racks; by default that of a host's link.",
    ),
    "awake": Knob(
        default=True,
        doc="Keep cores awake during a run, so that a host is as fast alone as beside others.",
    ),
    "fault": Knob(default=NONE, doc=f"What goes wrong, and at which step: {FORMS}."),
}


class LinkFacts(TypedDict):
    """One host's link as asked and as achieved, as it is stored."""

    host: str
    asked_bytes_per_s: float | None
    sent_bytes_per_s: float
    received_bytes_per_s: float
    asked_round_trip_s: float | None
    round_trip_s: float


@dataclass(slots=True)
class _Open:
    """An open cluster, and the counters at the time when it was opened."""

    cluster: Cluster
    achieved: list[Achieved]
    tries: int
    """How many measurements `achieved` is the best of."""
    setup_s: float
    since: float
    delay_line_s: float
    softirq_s: float
    awake: Awake | None = None
    """What keeps the cores awake, from the first start to the stop of a run."""
    struck: dict[str, object] | None = None
    """The fault that was injected, as it is stored."""


class LabSite(Site):
    """Hosts with their own addresses, names, cores and links, all on this machine."""

    name = "lab"
    traffic_scope = "hosts"

    def __init__(self) -> None:
        self._processes = Processes()
        self._open: _Open | None = None
        self._achieved: dict[tuple[int, LabLink, LabLink | None, str], tuple[list[Achieved], int]] = {}

    def state(self) -> SiteState:
        if missing := missing_programs():
            return _unavailable(
                f"no program {', '.join(missing)}", f"apt install {' '.join(sorted(set(missing.values())))}"
            )
        how = privilege()
        if how is None:
            return _unavailable(
                "namespaces cannot be made: not root, and user namespaces are not allowed",
                "run as root, or: sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=1000",
            )
        remarks = [] if how == AS_ROOT else ["without root, in a user namespace"]
        if cgroups.find_bases() is None:
            remarks.append("no control groups: core_share and dilation stay 1")
        lack = None if has_netem() else lack_of_delay_line()
        remarks.append(f"no latency: {lack}" if lack else f"latency by {NETEM if has_netem() else DELAY_LINE}")
        return SiteState(state="ready", reason="; ".join(remarks))

    def limits(self) -> SiteLimits:
        cores = usable_cores()
        return SiteLimits(
            hosts=MOST_HOSTS,
            cores_per_host=len(cores),
            workers_per_host=most_workers(),
            networks=True,
            knobs=KNOBS,
            proves_on="local",
            refuses=lambda cluster: _refusal(cluster, len(cores)),
        )

    def open(self, cluster: ClusterChoice, *, ports: int) -> Topology:
        began, cores, how = time.monotonic(), usable_cores(), privilege()
        if how is None or missing_programs():
            state = self.state()
            raise SiteError(f"site lab: {state.reason}", hint=state.fix)
        if reason := _refusal(cluster, len(cores)):
            raise SiteError(reason)
        layout = layout_of(cluster, cores)
        delay_by = _means_of_delay(layout)
        if layout.link.rate_bytes_per_s:
            measured_ceiling(delay_by, layout.link, privilege=how)
            if reason := _refusal(cluster, len(cores)):
                raise SiteError(reason)
        bases = cgroups.find_bases()
        groups = cgroups.Groups(bases, cgroups.owner_of_this_process()) if bases else None
        made = Cluster(layout, privilege=how, delay_by=delay_by, groups=groups)
        made.make()
        setup_s = time.monotonic() - began
        try:
            achieved, tries = self._measured(made)
        except BaseException:
            made.close()
            raise
        self._open = _Open(
            cluster=made,
            achieved=achieved,
            tries=tries,
            setup_s=setup_s,
            since=time.monotonic(),
            delay_line_s=_delay_line_s(made),
            softirq_s=_softirq_s(),
        )
        # In a network namespace of its own no other program of the machine can take a host's ports.
        free = tuple(range(FIRST_PORT, FIRST_PORT + ports))
        return Topology(
            hosts=tuple(
                Host(name=host.name, address=host.address, cores=host.cores, interface=DEVICE, ports=free)
                for host in layout.hosts
            )
        )

    def _measured(self, cluster: Cluster) -> tuple[list[Achieved], int]:
        """What the links achieve, and in how many tries; measured when such a cluster is opened for the first time."""
        layout = cluster.layout
        key = (len(layout.hosts), layout.link, layout.spine, cluster.delay_by)
        if key not in self._achieved:
            best, tries = cluster.measure(), 1
            while tries <= MORE_TRIES and not all(_as_asked(achieved, layout) for achieved in best):
                best = [_better(*pair) for pair in zip(best, cluster.measure(), strict=True)]
                tries += 1
            self._achieved[key] = best, tries
        return self._achieved[key]

    def start(self, process: Process, *, argv: Sequence[str], env: Mapping[str, str], folder: Path) -> LocalProcess:
        opened = self._opened()
        cluster = opened.cluster
        if cluster.layout.awake and opened.awake is None:
            opened.awake = Awake(cluster.layout.awake, cluster.idle_group)
        inside = [*cluster.hosts[process.host].enter("net", "uts", "pid", "mount"), "--", *argv]
        command = tethered(inside, cores=process.cores, groups=cluster.folders[process.host])
        # nsenter only waits for the program, which is in another pid namespace.
        return self._processes.start(process, command, env=env, folder=folder, leader_waits=True)

    def stop(self) -> list[str]:
        stuck = self._processes.stop()
        self._let_sleep()
        return stuck

    def _let_sleep(self) -> None:
        if self._open and self._open.awake:
            self._open.awake.end()
            self._open.awake = None

    def own_cpu_s(self) -> float:
        opened = self._opened()
        return _delay_line_s(opened.cluster) + (opened.awake.cpu_s() if opened.awake else 0.0)

    def disturbs_at(self) -> int | None:
        fault = self._opened().cluster.layout.fault
        return fault.step if fault else None

    def disturb(self) -> None:
        opened = self._opened()
        cluster, fault = opened.cluster, opened.cluster.layout.fault
        assert fault is not None
        host = [host.name for host in cluster.layout.hosts].index(fault.host)
        if fault.kind == "cut-link":
            cluster.cut_link(host)
        elif fault.kind == "slow-host":
            cluster.slow(host, fault.factor)
        else:
            cluster.kill(host)
        opened.struck = {"kind": fault.kind, "host": fault.host, "step": fault.step, "unix_s": time.time()}

    def traffic(self) -> dict[str, int]:
        sent, received = zip(*self._opened().cluster.traffic() or [(0, 0)], strict=True)
        return {"sent_bytes": sum(sent), "received_bytes": sum(received)}

    def links(self) -> list[LinkFacts]:
        """The link of each host; none of a host that is alone."""
        opened = self._opened()
        layout = opened.cluster.layout
        return [
            {
                "host": host.name,
                "asked_bytes_per_s": layout.link.rate_bytes_per_s,
                "sent_bytes_per_s": achieved.sent_bytes_per_s,
                "received_bytes_per_s": achieved.received_bytes_per_s,
                "asked_round_trip_s": layout.round_trip_s or None,
                "round_trip_s": achieved.round_trip_s,
            }
            for host, achieved in zip(layout.hosts, opened.achieved, strict=False)
        ]

    def facts(self) -> dict[str, object]:
        opened = self._opened()
        cluster, layout = opened.cluster, opened.cluster.layout
        wall = max(time.monotonic() - opened.since, 1e-9)
        line_s, softirq_s = _delay_line_s(cluster) - opened.delay_line_s, _softirq_s() - opened.softirq_s
        return {
            "setup_s": opened.setup_s,
            "dilation": layout.dilation,
            "core_share": layout.core_share,
            "awake": list(layout.awake),
            "not_dilated": NOT_DILATED if layout.dilation > 1 else None,
            "delay_by": cluster.delay_by,
            "delay_line_real_time": cluster.delay_line.real_time if cluster.delay_line else None,
            "racks": [host.rack for host in layout.hosts],
            "quotas": [host.quota for host in layout.hosts],
            "links": self.links(),
            "links_measured": opened.tries,
            "own_cpu": {
                "delay_line_s": line_s,
                "softirq_s": softirq_s,
                "wall_s": wall,
                "fraction": (line_s + softirq_s) / wall,
            },
            "fault": opened.struck,
        }

    def close(self) -> None:
        self._let_sleep()
        opened, self._open = self._open, None
        if opened:
            opened.cluster.close()

    def sweep(self, folder: Path) -> None:
        sweep_folder(folder)
        self.mend()

    def mend(self) -> list[str]:
        bases = cgroups.find_bases()
        return cgroups.sweep(bases) if bases else []

    def _opened(self) -> _Open:
        assert self._open is not None, "the lab is not open"
        return self._open


def _unavailable(reason: str, fix: str) -> SiteState:
    return SiteState(state="unavailable", reason=reason, fix=fix)


def _refusal(cluster: ClusterChoice, cores: int) -> str | None:
    """Why this machine cannot emulate a cluster. Only reads files, so `plan` needs no rights and changes nothing."""
    delayed = bool(cluster.network and cluster.network.latency_s)
    means = (NETEM, DELAY_LINE) if delayed else (NO_DELAY,)
    ceiling = next((rate for delay_by in means if (rate := known_ceiling(delay_by)) is not None), None)
    if cluster.workers > (most := most_workers()):
        return f"{cluster.workers} workers on {cluster.hosts} hosts are more than the {most} that this machine holds"
    return refusal(cluster, cores=cores, quotas=cgroups.find_bases() is not None, ceiling=ceiling)


def _means_of_delay(layout: Layout) -> str:
    if not layout.link.delay_s:
        return NO_DELAY
    if has_netem():
        return NETEM
    if lack := lack_of_delay_line():
        raise SiteError(f"no latency can be emulated: the kernel has no netem, and {lack}")
    return DELAY_LINE


def _as_asked(achieved: Achieved, layout: Layout) -> bool:
    rate, trip = layout.link.rate_bytes_per_s, layout.round_trip_s
    slowest = min(achieved.sent_bytes_per_s, achieved.received_bytes_per_s)
    return (not rate or slowest > rate * (1 - OFF)) and (not trip or achieved.round_trip_s < trip * (1 + OFF))


def _better(first: Achieved, second: Achieved) -> Achieved:
    return Achieved(
        sent_bytes_per_s=max(first.sent_bytes_per_s, second.sent_bytes_per_s),
        received_bytes_per_s=max(first.received_bytes_per_s, second.received_bytes_per_s),
        round_trip_s=min(first.round_trip_s, second.round_trip_s),
    )


def _delay_line_s(cluster: Cluster) -> float:
    return cluster.delay_line.cpu_s() if cluster.delay_line else 0.0


def _softirq_s() -> float:
    """CPU seconds that the kernel spent on packets (and timers) outside of any process, on all cores."""
    return float(getattr(psutil.cpu_times(), "softirq", 0.0))
