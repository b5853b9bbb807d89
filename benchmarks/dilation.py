"""The lab's claim about time dilation: n hosts limited to 1/k of everything behave like n hosts k times slower.

Runs studies/dilation.toml (or reads its records) and prints the efficiency of two hosts at each k, and how far it is
from that at k = 1. Dilated results may support claims only if that bias is at most 10 %.
"""

from __future__ import annotations

import sys
from pathlib import Path

from claims import Claim, parser, publish, say, with_ends
from paceline.compare import gather
from paceline.compare.runs import Runs
from paceline.spec import load_study
from paceline.stats import ratio_interval
from paceline.workbench import Workbench

STUDY = Path(__file__).parent.parent / "studies" / "dilation.toml"
BIAS = 0.10


def claims_of(groups: list[Runs]) -> list[Claim]:
    by_size = {(group.trial.cluster.hosts, group.trial.cluster.pace.dilation): group for group in groups}
    factors = sorted({dilation for _, dilation in by_size})
    efficiency = {k: _efficiency(by_size[1, k], by_size[2, k]) for k in factors}
    claims = []
    for k in factors:
        name = f"efficiency of 2 hosts at k = {k:g}"
        speedup = ratio_interval(by_size[2, k].by_round("throughput"), by_size[1, k].by_round("throughput")).ratio
        claims.append(
            Claim(name=name, ratio=with_ends(speedup.times(0.5)), claim="shown", holds=True, n=len(efficiency[k]))
        )
    for k in factors[1:]:
        bias = ratio_interval(efficiency[k], efficiency[1.0]).ratio
        claims.append(
            Claim(
                name=f"bias at k = {k:g}: its efficiency ÷ that at k = 1",
                ratio=with_ends(bias),
                claim=f"within {BIAS:.0%} of 1",
                holds=abs(bias.value - 1) <= BIAS,
                n=len(efficiency[k]),
            )
        )
    return claims


def _efficiency(one_host: Runs, two_hosts: Runs) -> dict[int, float]:
    """Round → throughput per worker on two hosts ÷ that on one host."""
    alone, together = one_host.by_round("throughput"), two_hosts.by_round("throughput")
    return {turn: together[turn] / alone[turn] / 2 for turn in together.keys() & alone.keys()}


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    bench = Workbench(load_study(STUDY), Path(".paceline"))
    say(f"running what is missing of {STUDY.name}")
    bench.run()
    return publish(claims_of(gather(bench.snapshot().records, bench.prepared.trials)), as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
