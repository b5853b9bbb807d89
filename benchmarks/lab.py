"""The lab's own claims: how long it takes to set up, what it costs while idle, and how accurate its links are.

It needs the rights to make namespaces (root, or user namespaces); claims about links need a quiet machine.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import psutil

from claims import Claim, parser, publish, say
from paceline.errors import SiteError
from paceline.plan.trial import ClusterChoice
from paceline.sites.lab.site import KNOBS, LabSite
from paceline.spec.networks import NETWORKS
from paceline.spec.study import Network

HOSTS = 8
ROUNDS = 5
SETUP_LIMIT_S = 3.0
IDLE_S = 2.0
IDLE_LIMIT = 0.01
TRUE_WITHIN = 0.10


def cluster(hosts: int, network: Network | None = None) -> ClusterChoice:
    return ClusterChoice(
        site="lab",
        hosts=hosts,
        workers_per_host=1,
        threads_per_worker=1,
        device="cpu",
        network=network,
        oversubscribe=True,
        options={name: knob.default for name, knob in KNOBS.items()},
    )


def set_up() -> Claim:
    """Claim on the time of `open`, including the measurement of all links."""
    times = []
    for _ in range(ROUNDS):
        site = LabSite()
        begin = time.monotonic()
        site.open(cluster(HOSTS), ports=1)
        times.append((time.monotonic() - begin) / SETUP_LIMIT_S)
        site.close()
    return _claim(f"set-up of {HOSTS} hosts ÷ {SETUP_LIMIT_S:g} s", times, "below 1", max(times) < 1)


def idle(network: Network | None, name: str) -> Claim:
    """Claim on the CPU time of all processes of an idle lab ÷ wall time; other programs are not counted."""
    site = LabSite()
    site.open(cluster(HOSTS, network), ports=1)
    ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
    shares = []
    for _ in range(ROUNDS):
        before, begin = _cpu_s(ours), time.monotonic()
        time.sleep(IDLE_S)
        shares.append((_cpu_s(ours) - before) / (time.monotonic() - begin))
    site.close()
    holds = statistics.mean(shares) <= IDLE_LIMIT
    return _claim(f"idle cost of {HOSTS} hosts, {name}, of a core", shares, f"at most {IDLE_LIMIT:g}", holds)


def truth(name: str, network: Network) -> list[Claim]:
    """Claims on achieved ÷ requested bandwidth and round trip."""
    achieved: dict[str, list[float]] = {"bandwidth": [], "round trip": []}
    for _ in range(ROUNDS):
        site = LabSite()
        try:
            site.open(cluster(2, network), ports=1)
        except SiteError as error:
            say(f"{name} is refused: {error.message}")
            return []
        for link in site.links():
            if link["asked_bytes_per_s"]:
                achieved["bandwidth"].append(link["sent_bytes_per_s"] / link["asked_bytes_per_s"])
            if link["asked_round_trip_s"]:
                achieved["round trip"].append(link["round_trip_s"] / link["asked_round_trip_s"])
        site.close()
    return [
        _claim(
            f"{name}: {what}, achieved ÷ asked",
            ratios,
            f"within {TRUE_WITHIN:.0%}",
            abs(statistics.median(ratios) - 1) <= TRUE_WITHIN,
        )
        for what, ratios in achieved.items()
        if ratios
    ]


def _cpu_s(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        times = process.cpu_times()
        total += times.user + times.system
    return total


def _claim(name: str, values: list[float], claim: str, holds: bool) -> Claim:
    ratio: dict[str, Any] = {"value": statistics.median(values), "low": min(values), "high": max(values)}
    return Claim(name=name, ratio=ratio, claim=claim, holds=holds, n=len(values), facts={"interval": "least and most"})


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    state = LabSite().state()
    if state.state != "ready":
        say(f"no lab here: {state.reason}; {state.fix}")
        return 0
    claims = [set_up(), idle(None, "unshaped"), idle(NETWORKS["WAN"], "WAN")]
    for name, network in NETWORKS.items():
        say(f"{name} …")
        claims += truth(name, network)
    return publish(claims, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
