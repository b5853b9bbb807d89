"""The hosts and links of the lab for the cluster of a trial, or why it cannot be emulated. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.plan.knob_values import number, optional_number, text
from paceline.plan.trial import ClusterChoice
from paceline.sites.lab.faults import Fault, parse_fault

MOST_HOSTS = 64
NETWORK = "10.77.0"
"""The first three numbers of all addresses. They lie in namespaces of the lab, so they collide neither with a network
of the machine nor with another lab."""
LEAST_QUOTA = 0.1
"""The smallest part of a core: the kernel gives no less than 1 ms per period, and periods above 10 ms would show in
single steps."""
BURST_S = 2e-3
"""See `links.burst_bytes`."""
MOST_AWAKE = 8
"""Cores that are kept awake even if no host is on them; of a machine with many more, all would only get hot."""
TOPOLOGIES = ("switch", "racks")


@dataclass(frozen=True, kw_only=True, slots=True)
class LabLink:
    """One direction of a link; both directions are alike."""

    rate_bytes_per_s: float | None = None
    """None: as fast as the machine can."""
    delay_s: float = 0.0
    jitter_s: float = 0.0
    burst_s: float = BURST_S
    """Bytes that pass at once, as the time that they take at this rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabHost:
    """One emulated host."""

    name: str
    address: str
    cores: tuple[int, ...]
    quota: float | None
    """CPU time that it gets, as a number of cores; None: all of its cores."""
    rack: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """A cluster to be emulated, with dilation applied."""

    hosts: tuple[LabHost, ...]
    link: LabLink
    """Between each host and its switch."""
    spine: LabLink | None
    """Between the two racks; None: one switch."""
    dilation: float
    core_share: float
    awake: tuple[int, ...]
    """Cores that must not sleep during a run: those of the hosts, and some that more hosts would use."""
    fault: Fault | None

    @property
    def round_trip_s(self) -> float:
        """The delay that was asked for, from host to host and back, over two links each way."""
        return 4 * self.link.delay_s


def layout_of(cluster: ClusterChoice, cores: Sequence[int]) -> Layout:
    """Hosts and links for a cluster for which `refusal` gives no reason."""
    options, network = cluster.options, cluster.network
    share, dilation = number(options, "core_share"), number(options, "dilation")
    racks = 2 if options["topology"] == "racks" else 1
    wanted = min(_cores_per_host(cluster), len(cores))
    quota = None if share == dilation == 1.0 else wanted * share / dilation
    hosts = tuple(
        LabHost(
            name=f"lab{number + 1}",
            address=f"{NETWORK}.{number + 1}",
            # Given out in turn, so that all cores carry the same load.
            cores=tuple(cores[(number * wanted + k) % len(cores)] for k in range(wanted)),
            quota=quota,
            rack=number % racks,
        )
        for number in range(cluster.hosts)
    )
    rate = network.bandwidth_bytes_per_s if network else None
    link = LabLink(
        rate_bytes_per_s=None if rate is None else rate / dilation,
        # From host to host there are two links, each with half of the latency.
        delay_s=(network.latency_s or 0.0) * dilation / 2 if network else 0.0,
        jitter_s=(network.jitter_s or 0.0) * dilation / 2 if network else 0.0,
        # As many bytes as without dilation: smaller packets would cost more CPU time.
        burst_s=BURST_S * dilation,
    )
    spine = optional_number(options, "spine_bandwidth") or rate
    return Layout(
        hosts=hosts,
        link=link,
        spine=LabLink(rate_bytes_per_s=None if spine is None else spine / dilation, burst_s=BURST_S * dilation)
        if racks > 1
        else None,
        dilation=dilation,
        core_share=share,
        awake=tuple(cores[: max(MOST_AWAKE, wanted * cluster.hosts)]) if options["awake"] else (),
        fault=parse_fault(text(options, "fault")),
    )


def refusal(cluster: ClusterChoice, *, cores: int, quotas: bool, ceiling: float | None) -> str | None:
    """Why this machine cannot emulate a cluster, with what to write instead; None if it can.

    Args:
        cluster: what a trial asks for.
        cores: cores that we may use.
        quotas: whether control groups can be made, which limit a host to its share.
        ceiling: measured bytes per second up to which links are true; None: not measured yet.
    """
    core_share, dilation = number(cluster.options, "core_share"), number(cluster.options, "dilation")
    share = core_share / dilation
    per_host = _cores_per_host(cluster)
    if cluster.device != "cpu":
        return "the lab emulates hosts without accelerators"
    if share != 1.0 and not quotas:
        return "control groups cannot be written here, so core_share and dilation must be 1: run as root"
    wanted = cluster.hosts * per_host * share
    if wanted > cores * (1 + 1e-9) and not cluster.oversubscribe:
        fitting = cores / (cluster.hosts * per_host)
        return (
            f"{cluster.hosts} hosts × {per_host} cores × a share of {share:g} want {wanted:g} cores, and there are "
            f"{cores}: under [cluster.lab] write core_share = {_below(fitting):g} for all numbers of hosts, or "
            f"dilation = {core_share / fitting:g}"
        )
    if share != 1.0 and per_host * share < LEAST_QUOTA:
        return f"a host would get {per_host * share:g} of a core, and the kernel holds to no less than {LEAST_QUOTA:g}"
    asked = max((rate for rate in _rates(cluster) if rate), default=None)
    if asked is not None and ceiling is not None and asked > ceiling:
        return (
            f"{_mbit(asked)} Mbit/s, and links of the lab are true up to {_mbit(ceiling)} on this machine: "
            f"lower the bandwidth, or write dilation = {-(-asked * dilation // ceiling):g} "
            "under [cluster.lab]"
        )
    return _fault_refusal(cluster, quotas=quotas)


def _fault_refusal(cluster: ClusterChoice, *, quotas: bool) -> str | None:
    try:
        fault = parse_fault(text(cluster.options, "fault"))
    except ValueError as error:
        return str(error)
    if fault and fault.host not in {f"lab{number + 1}" for number in range(cluster.hosts)}:
        return f"fault {cluster.options['fault']!r}: hosts are called lab1 … lab{cluster.hosts}"
    if fault and fault.kind == "slow-host" and not quotas:
        return "control groups cannot be written here, so no host can be slowed: run as root"
    return None


def _cores_per_host(cluster: ClusterChoice) -> int:
    return cluster.workers_per_host * cluster.threads_per_worker


def _rates(cluster: ClusterChoice) -> list[float | None]:
    """Rates of the links and the spine after dilation."""
    link = cluster.network.bandwidth_bytes_per_s if cluster.network else None
    rates = [link, optional_number(cluster.options, "spine_bandwidth")]
    return [None if rate is None else rate / number(cluster.options, "dilation") for rate in rates]


def _below(share: float) -> float:
    """A share that fits, in two digits."""
    return max(0.01, int(share * 100) / 100)


def _mbit(bytes_per_s: float) -> str:
    return f"{bytes_per_s * 8 / 1e6:.0f}"
