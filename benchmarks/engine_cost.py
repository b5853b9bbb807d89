"""The cost of an engine: the same training on two lab hosts, started by the lab itself, ssh, MPI, Slurm and Ray.

Needs what `make test-engines` installs. Rounds are interleaved; the ratio is an engine's step ÷ the lab's in the same
round. The program also reports the CPU time that the engine took from a host's share during the measured steps: that
of all processes of the host except the ranks. Paceline runs on a login node, so it is not included; the agent on each
host, which starts the rank and sends its events back, is included.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "engines")]

from claims import Claim, parser, publish, say, with_ends  # noqa: E402
from engines.engine_rig import TRAINING, Hosts  # noqa: E402
from engines.test_engines import Engine, by_mpi, by_ray, by_sbatch, by_ssh  # noqa: E402
from paceline.folders import cache_root  # noqa: E402
from paceline.record import Record, summarize  # noqa: E402
from paceline.record.summary import floats, measured_samples  # noqa: E402
from paceline.sites.lab import cgroups  # noqa: E402
from paceline.sites.processes import cpu_seconds  # noqa: E402
from paceline.spec import read_study  # noqa: E402
from paceline.spec.networks import read_network  # noqa: E402
from paceline.stats import ratio_interval  # noqa: E402
from paceline.workbench import Workbench  # noqa: E402

NETWORK = "1GbE"
ROUNDS = 5
WITHIN = 0.10
SHARE = 0.5
PERIOD_S = 0.25
LOGIN = f"lab{TRAINING + 1}"
ENGINES: dict[str, Callable[[Hosts], Engine]] = {"ssh": by_ssh, "mpi": by_mpi, "slurm": by_sbatch, "ray": by_ray}


class HostCpu:
    """CPU time of all processes of each host of this process's lab, over time."""

    def __init__(self) -> None:
        bases = cgroups.find_bases()
        assert bases is not None, "hosts are told apart by their control groups"
        self._folder = bases.cpu / f"{cgroups.PREFIX}.{cgroups.owner_of_this_process()}"
        self._used: dict[str, dict[int, float]] = {}
        """CPU time by host and process; a process that ended keeps its last value."""
        self._seen: dict[str, list[tuple[float, float]]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> HostCpu:  # noqa: PYI034 - typing.Self came with Python 3.11; nobody subclasses it
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(PERIOD_S):
            for group in self._folder.glob("*/cgroup.procs"):
                self._look(group)

    def _look(self, group: Path) -> None:
        host = group.parent.name
        used = self._used.setdefault(host, {})
        try:
            pids = [int(pid) for pid in group.read_text(encoding="ascii").split()]
        except OSError:  # the host is gone
            return
        for pid in pids:
            used[pid] = max(used.get(pid, 0.0), cpu_seconds(pid))
        self._seen.setdefault(host, []).append((time.time(), sum(used.values())))

    @property
    def hosts(self) -> list[str]:
        return list(self._seen)

    def between(self, host: str, start: float, end: float) -> float:
        at, used = zip(*self._seen[host], strict=True)
        return float(np.interp(end, at, used) - np.interp(start, at, used))


@dataclass
class Seen:
    """Step times of one engine, by round, and the CPU time that its hosts used besides the ranks."""

    step_s: dict[int, float] = field(default_factory=dict)
    beside: list[float] = field(default_factory=list)
    """Shares of a core, one per run and training host."""
    login: list[float] = field(default_factory=list)

    def add(self, turn: int, record: Record, cpu: HostCpu) -> None:
        summary, measured = summarize(record), measured_samples(record)
        if not record.ok or summary is None or measured is None:
            say(f"  failed: {record.outcome.reason}")
            return
        self.step_s[turn] = summary.step_s
        ranks, starts, walls, used = (floats(measured, name) for name in ("rank", "start_s", "wall_s", "cpu_s"))
        for rank in record.ranks:
            own = ranks == rank.rank
            assert rank.clock_origin_s is not None
            start = rank.clock_origin_s + float(starts[own].min())
            end = rank.clock_origin_s + float((starts + walls)[own].max())
            self.beside.append((cpu.between(rank.host, start, end) - float(used[own].sum())) / (end - start))
            if rank.rank == 0 and LOGIN in cpu.hosts:
                self.login.append(cpu.between(LOGIN, start, end) / (end - start))
        say(f"  step {summary.step_s * 1e3:.0f} ms; beside the ranks {statistics.mean(self.beside[-2:]):.2%} of a core")


def study(name: str, cluster: dict[str, Any]) -> dict[str, Any]:
    return {
        "study": {"name": name, "question": "What does an engine cost?"},
        "workload": {"model": "resnet44", "batch_per_worker": 8},
        "framework": {"name": "torch"},
        "cluster": {"hosts": 2, "oversubscribe": True, **cluster},
        "measure": {"warmup_steps": 3, "steps": 20, "repeats": 1},
    }


def by_lab(folder: Path) -> Record:
    """Run with ranks started by the lab itself, on cores that may sleep, as under an engine."""
    data = study("by-lab", {"site": "lab", "network": NETWORK, "lab": {"core_share": SHARE, "awake": False}})
    bench = Workbench(read_study(data), folder)
    bench.run()
    return bench.snapshot().records[-1]


def by_engine(make: Callable[[Hosts], Engine], folder: Path) -> Record:
    """Run with ranks started by an engine, on hosts of the same kind that are already up."""
    hosts = Hosts(folder, read_network(NETWORK), login_node=True, core_share=SHARE)
    try:
        engine = make(hosts)
        engine.env["PACELINE_CACHE"] = str(cache_root())  # environments that are built already
        return engine.run(folder, study(f"by-{engine.site}", {"site": engine.site, engine.site: engine.options}))[-1]
    finally:
        hosts.close()


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    seen: dict[str, Seen] = {name: Seen() for name in ("lab", *ENGINES)}
    for turn in range(ROUNDS):
        for name, engine_seen in seen.items():
            say(f"round {turn + 1}: {name}")
            with tempfile.TemporaryDirectory() as folder, HostCpu() as cpu:
                record = by_lab(Path(folder)) if name == "lab" else by_engine(ENGINES[name], Path(folder))
            engine_seen.add(turn, record, cpu)
    claims = []
    for name in ENGINES:
        test = ratio_interval(seen[name].step_s, seen["lab"].step_s)
        claims.append(
            Claim(
                name=f"{name}'s step ÷ the lab's",
                ratio=with_ends(test.ratio),
                claim=f"within {WITHIN:.0%} of 1, or it is the engine's cost",
                holds=abs(test.ratio.value - 1) <= WITHIN,
                n=test.n_pairs,
                facts={
                    "cores_beside_a_rank": seen[name].beside,
                    "the_lab's": seen["lab"].beside,
                    "cores_of_login_node": seen[name].login,
                    "step_s": seen[name].step_s,
                },
            )
        )
    return publish(claims, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
