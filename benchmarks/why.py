"""Does `explain` name what holds real training back, and does its advice gain what it predicts? PyTorch in the lab.

Training is held back in four ways: a slow link, a host at half speed, an input pipeline that is too slow, more threads
than cores. Each has to be the first finding. Then its advice is followed, and the throughput has to rise as predicted,
within the interval. Needs root, as the lab does.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claims import Claim, parser, publish, say, with_ends
from paceline.campaigns import companions_of
from paceline.explain.finding import Finding
from paceline.model.equations.terms import BANDWIDTH, CONTENTION, INPUT, STRAGGLER
from paceline.record import Record, summarize
from paceline.spec import read_study
from paceline.stats import ratio_interval
from paceline.workbench import Workbench

REPEATS = 5
HOSTS = 2
LATER = 1000
"""Added to the rounds of runs after a change."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A way to hold training back, and what undoes it."""

    name: str
    cause: str
    """The cause that has to be named."""
    study: Mapping[str, Mapping[str, Any]]
    undone: Mapping[str, Mapping[str, Any]]
    """Changes to the study that follow the advice, if the finding cannot express them as keys."""


def _study(workload: Mapping[str, Any], cluster: Mapping[str, Any], lab: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "study": {"name": "why", "question": "What holds it back?"},
        "workload": {"batch_per_worker": 8, **workload},
        "framework": {"name": "torch"},
        "cluster": {"site": "lab", "hosts": [1, 2], **cluster, "lab": dict(lab)},
        "measure": {"warmup_steps": 3, "steps": 30, "repeats": REPEATS},
    }


CASES = (
    Planted(
        name="slow link",
        cause=BANDWIDTH,
        undone={},
        study=_study({"model": "resnet44"}, {"network": "100Mbit"}, {"core_share": 0.5}),
    ),
    Planted(
        name="host at half speed",
        cause=STRAGGLER,
        undone={"cluster": {"lab": {"core_share": 0.5}}},
        study=_study({"model": "resnet44"}, {"network": "1GbE"}, {"core_share": 0.5, "fault": "slow-host:lab2@0:2"}),
    ),
    Planted(
        name="starved input",
        cause=INPUT,
        undone={},
        study=_study(
            # Little computation and little communication for each sample that is read.
            {
                "model": "mlp",
                "mlp": {"hidden": [[64]]},
                "batch_per_worker": 512,
                "input": "pipeline",
                "loader_workers": 0,
            },
            {"network": "1GbE"},
            {},
        ),
    ),
    Planted(
        name="too many threads",
        cause=CONTENTION,
        undone={},
        study=_study({"model": "resnet44"}, {"network": "1GbE", "threads_per_worker": 4, "oversubscribe": True}, {}),
    ),
)


def measured(data: Mapping[str, Any], folder: Path) -> Workbench:
    bench = Workbench(read_study(data), folder)
    bench.run()
    return bench


def changed(data: Mapping[str, Any], finding: Finding, undone: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The study after the advice."""
    new: dict[str, Any] = {section: dict(table) for section, table in data.items()}
    for key, value in (finding.change.axes if finding.change else {}).items():
        section, _, name = key.partition(".")
        new[section][name] = value
    for section, table in undone.items():
        new[section] |= table
    new["cluster"]["hosts"] = HOSTS
    return new


def throughputs(records: list[Record]) -> dict[int, float]:
    """Round → samples per second, for runs on two hosts."""
    on_all_hosts = [record for record in records if record.ok and record.trial.cluster.hosts == HOSTS]
    return {record.repeat: summary.throughput for record in on_all_hosts if (summary := summarize(record))}


def judged(case: Planted, folder: Path) -> dict[str, Any]:
    bench = measured(case.study, folder)
    for companion in companions_of(bench):
        Workbench(companion, folder).run()
    snapshot = bench.snapshot()
    explanation = next(explanation for explanation in snapshot.explanations if ".2h" in explanation.trial)
    first = explanation.findings[0]
    expected = first.change.gain if first.change else None
    after = measured(changed(case.study, first, case.undone), folder)
    before, then = throughputs(snapshot.records), throughputs(after.snapshot().records)
    # Runs after the change share no rounds with those before.
    gain = ratio_interval({LATER + repeat: value for repeat, value in then.items()}, before).ratio
    within = expected is not None and bool(expected.contains(gain.value))
    return {
        "name": case.name,
        "named": first.cause,
        "right": first.cause == case.cause,
        "sentence": first.sentence,
        "do": first.change.words if first.change else "",
        "expected": expected.to_json() if expected else None,
        "gain": with_ends(gain),
        "within": within,
        "runs": len(then),
        "shares": {share.cause: share.best for share in explanation.shares},
    }


def main() -> int:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--case", action="append", choices=[case.name for case in CASES], help="only these")
    arguments.add_argument("--store", type=Path, help="folder that keeps the records, to go on after an interruption")
    args = arguments.parse_args()
    rows = []
    for case in CASES:
        if args.case and case.name not in args.case:
            continue
        with tempfile.TemporaryDirectory() as passing:
            row = judged(case, (args.store or Path(passing)) / case.name.replace(" ", "-"))
        rows.append(row)
        say(f"{row['name']}: {row['sentence']}; do: {row['do']}; expected {row['expected']}, found {row['gain']}")
    claims = [
        Claim(
            name=row["name"],
            ratio=row["gain"],
            n=row["runs"],
            holds=row["right"] and row["within"],
            claim=f"first finding is {row['named']}, and the advice gains what was expected",
        )
        for row in rows
    ]
    return publish(claims, as_json=args.json, cases=rows)


if __name__ == "__main__":
    sys.exit(main())
