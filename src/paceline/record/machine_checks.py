"""Checks whether other programs or the machine itself disturbed a run.

Reads what the runner wrote into `record.state` (before, during, after) and the facts of the ranks. What a system does
not report (None, or no such key) gives no doubt. Part of `checks`, which calls it for measured runs only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from paceline.record.fact import number, section
from paceline.record.lockstep import floats
from paceline.record.phases import COMMUNICATION
from paceline.record.record import Doubt, Record
from paceline.record.summary import phase_columns

IDLE_PHASES = frozenset({"data", COMMUNICATION})
"""The phases in which a rank may wait without using its core."""

STARVED_LIMIT = 0.10
"""A computing rank keeps at least one core busy. A tenth of that time without CPU is more than page faults and system
noise take."""

BUSY_OTHERS_LIMIT = 0.05
"""As a share of all cores. The daemons of an idle system use well under 1 %; at 5 % another program is working."""

PRESSURE_LIMIT = 0.10
"""The share of the run in which a runnable task had no core; pinned ranks alone cause almost none."""

LOAD_LIMIT = 1.0
"""Runnable tasks before the run. The load still contains our previous run, so it is used only if the CPU time of other
programs is unknown."""

STEAL_LIMIT = 0.01
"""The share of the time that a hypervisor gave to other guests. It comes in bursts, so 1 % of the run can be several
per cent of a step."""

HOST_LIMIT = 0.01
"""We promise that the host uses under 1 % of a core while workers measure."""

FREQUENCY_LIMIT = 0.10
"""Of the mean over cores. Turbo frequencies are 3 to 5 % (100 MHz) apart, so this is a change by at least two."""

MEMORY_LIMIT = 0.90
"""Above this share of the machine's memory the kernel reclaims pages and swaps, and the page cache is lost."""


def machine_doubts(record: Record, measured: pa.Table) -> Iterator[Doubt]:
    """Yields the doubts about the machine during a run."""
    yield from _starved(record, measured)
    yield from _neighbours(record)
    yield from _host(record)
    yield from _frequency(record)
    yield from _memory(record)
    yield from _shared_cores(record)


def _starved(record: Record, measured: pa.Table) -> Iterator[Doubt]:
    if record.trial.cluster.device != "cpu":
        return
    # Some ranks report that they wait inside their computing phases: asleep (an emulated framework), or for their peers
    # (a step that is one program, including the exchange). Their CPU time does not show whether they were starved.
    waiting = {rank.rank for rank in record.ranks if rank.reported.waits}
    rank, cpu = floats(measured, "rank"), floats(measured, "cpu_s")
    computing = [seconds for name, seconds in phase_columns(measured).items() if name not in IDLE_PHASES]
    if not computing or np.isnan(cpu).any():
        return
    compute = np.sum(computing, axis=0)
    got = {
        int(r): float(cpu[rank == r].sum() / max(compute[rank == r].sum(), 1e-12))
        for r in np.unique(rank)
        if int(r) not in waiting
    }
    worst = min(got, key=got.__getitem__, default=None)
    if worst is not None and got[worst] < (1 - STARVED_LIMIT) * record.pace.granted:
        yield Doubt(
            code="starved",
            message=f"rank {worst} got a core for {got[worst]:.0%} of the time it computed: other programs ran there",
            hint="close other programs and measure again, or use fewer workers than cores",
        )


def _neighbours(record: Record) -> Iterator[Doubt]:
    seen = []
    others = _number(record.state, "during", "busy_other_fraction")
    if others is not None and others > BUSY_OTHERS_LIMIT:
        seen.append(f"other programs used {others:.0%} of the machine's CPU time")
    steal = _number(record.state, "during", "steal_fraction")
    if steal is not None and steal > STEAL_LIMIT:
        seen.append(f"the hypervisor gave {steal:.1%} of the CPU time to other guests")
    # Oversubscribed cores, hosts with a share of a core, and cores that are kept awake cause pressure on purpose.
    own = record.trial.cluster.oversubscribe or record.pace.granted < 1.0 or section(record.state, "site").get("awake")
    if not own:
        pressure = _number(record.state, "during", "cpu_pressure_some")
        if pressure is not None and pressure > PRESSURE_LIMIT:
            seen.append(f"tasks waited for a core {pressure:.0%} of the time (CPU pressure)")
    load = _number(record.state, "before", "load1")
    if others is None and load is not None and load > LOAD_LIMIT:
        seen.append(f"the load was {load:.1f} before the run")
    if seen:
        yield Doubt(
            code="noisy-neighbour",
            message="; ".join(seen),
            hint="see who: top -o %CPU   then measure again when the machine is quiet",
        )


def _host(record: Record) -> Iterator[Doubt]:
    fraction = _number(record.state, "during", "host_cpu_fraction")
    if fraction is not None and fraction > HOST_LIMIT:
        yield Doubt(
            code="host-busy",
            message=f"Paceline itself used {fraction:.1%} of a core while workers measured",
            hint="report it: the host should stay under 1 %",
        )


def _frequency(record: Record) -> Iterator[Doubt]:
    before, after = (_mean_frequency(record.state, when) for when in ("before", "after"))
    if before is None or after is None:
        return
    change = after / before - 1
    if abs(change) > FREQUENCY_LIMIT:
        yield Doubt(
            code="frequency",
            message=f"the CPU's clock changed by {change:+.0%} over the run, {before:.0f} to {after:.0f} MHz",
            hint="fix it: cpupower frequency-set --governor performance; if it fell, look for heat",
        )


def _memory(record: Record) -> Iterator[Doubt]:
    total = record.machine.get("memory_bytes")
    hosts: dict[str, float] = {}
    for rank in record.ranks:
        hosts[rank.host] = hosts.get(rank.host, 0.0) + (rank.peak_rss_bytes or 0.0)
    used = max(hosts.values(), default=0.0)
    if total and used > MEMORY_LIMIT * total:
        yield Doubt(
            code="memory-near",
            message=f"the ranks of one host peaked at {used / 2**30:.1f} GiB of {total / 2**30:.1f} GiB",
            hint="use a smaller batch or fewer workers per host: batch_per_worker, workers_per_host",
        )


def _shared_cores(record: Record) -> Iterator[Doubt]:
    physical = record.machine.get("cores")
    cluster = record.trial.cluster
    wanted = cluster.workers_per_host * cluster.threads_per_worker
    if physical and wanted > physical and not cluster.oversubscribe:
        yield Doubt(
            code="shared-cores",
            message=f"{wanted} threads ran on {physical} physical cores: hardware threads take turns on one core",
            hint="compare it with nothing that had cores of its own; use fewer workers or threads",
        )


def _number(state: Mapping[str, object], when: str, key: str) -> float | None:
    return number(section(state, when).get(key))


def _mean_frequency(state: Mapping[str, object], when: str) -> float | None:
    values = section(state, when).get("cpu_freq_mhz")
    cores = values if isinstance(values, (list, tuple)) else ()
    # A core that is switched off reports nothing, or zero.
    frequencies = [frequency for core in cores if (frequency := number(core))]
    return sum(frequencies) / len(frequencies) if frequencies else None
