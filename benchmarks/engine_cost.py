"""What an engine costs: the same training on two lab hosts, started by the lab itself, ssh, MPI, Slurm and Ray.

Needs what `make test-engines` installs. Rounds are interleaved; the ratio is an engine's step over the lab's in the
same round, with the CPU time that its own processes used beside the ranks.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "engines")]

from claims import Claim, parser, publish, say  # noqa: E402
from engines.engine_rig import Hosts  # noqa: E402
from engines.test_engines import Engine, by_mpi, by_ray, by_sbatch, by_ssh  # noqa: E402
from paceline.folders import cache_root  # noqa: E402
from paceline.record import Record, summarize  # noqa: E402
from paceline.spec import read_study  # noqa: E402
from paceline.spec.networks import named_network  # noqa: E402
from paceline.stats import ratio_interval  # noqa: E402
from paceline.workbench import Workbench  # noqa: E402

NETWORK = "1GbE"
ROUNDS = 5
WITHIN = 0.10
SHARE = 0.5
ENGINES: dict[str, Callable[[Hosts], Engine]] = {"ssh": by_ssh, "mpi": by_mpi, "slurm": by_sbatch, "ray": by_ray}


@dataclass
class Seen:
    """Steps of one engine, by round, and what it used beside the ranks."""

    step_s: dict[int, float] = field(default_factory=dict)
    other_cpu: list[float] = field(default_factory=list)

    def add(self, turn: int, record: Record) -> None:
        summary = summarize(record)
        if not record.ok or summary is None:
            say(f"  failed: {record.outcome.reason}")
            return
        self.step_s[turn] = summary.step_s
        self.other_cpu.append(float(record.state["during"].get("busy_other_fraction") or 0.0))


def study(name: str, cluster: dict[str, Any]) -> dict[str, Any]:
    return {
        "study": {"name": name, "question": "What does an engine cost?"},
        "workload": {"model": "resnet44", "batch_per_worker": 8},
        "framework": {"name": "torch"},
        "cluster": {"hosts": 2, "oversubscribe": True, **cluster},
        "measure": {"warmup_steps": 3, "steps": 20, "repeats": 1},
    }


def by_lab(folder: Path) -> Record:
    """The lab starts the ranks itself, on cores that may sleep as they may under an engine."""
    data = study("by-lab", {"site": "lab", "network": NETWORK, "lab": {"core_share": SHARE, "awake": False}})
    bench = Workbench(read_study(data), folder)
    bench.run()
    return bench.records()[-1]


def by_engine(make: Callable[[Hosts], Engine], folder: Path) -> Record:
    """An engine starts them, on hosts of the same kind that are up already."""
    hosts = Hosts(folder, network=named_network(NETWORK), core_share=SHARE)
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
        for name, mine in seen.items():
            say(f"round {turn + 1}: {name}")
            with tempfile.TemporaryDirectory() as folder:
                record = by_lab(Path(folder)) if name == "lab" else by_engine(ENGINES[name], Path(folder))
            mine.add(turn, record)
    claims = []
    for name in ENGINES:
        ratio = ratio_interval(seen[name].step_s, seen["lab"].step_s)
        claims.append(
            Claim(
                name=f"{name}'s step ÷ the lab's", ratio={"value": ratio.value, "low": ratio.low, "high": ratio.high},
                claim=f"within {WITHIN:.0%} of 1, or it is the engine's cost", holds=abs(ratio.value - 1) <= WITHIN,
                n=ratio.n_pairs, facts={"cpu_of_others": sum(seen[name].other_cpu) / max(1, len(seen[name].other_cpu))},
            )
        )  # fmt: skip
    return publish(claims, as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
