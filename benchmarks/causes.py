"""Does `explain` name what holds a step back? Laws with one or two planted causes run in law time, in real processes.

The first finding has to name the planted cause; with two causes, the larger comes first and the other second. The
shares of all causes are compared with those of the law.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from claims import Claim, parser, publish, say
from paceline.campaigns import companions_of
from paceline.explain.explanation import Explanation
from paceline.spec import read_study
from paceline.workbench import Workbench
from planted import CASES, Case, cases, study_of

LEAST_NAMED = 0.95
POINTS = 0.10
"""Largest allowed difference between a share and the truth."""


def explained(case: Case, folder: Path) -> Explanation:
    """Paceline's explanation of the larger trial of a case."""
    bench = Workbench(read_study(study_of(case)), folder)
    bench.run()
    for companion in companions_of(bench):
        Workbench(companion, folder).run()
    return next(
        explanation for explanation in bench.snapshot().explanations if f".{case.workers}w" in explanation.trial
    )


def judged(case: Case, explanation: Explanation) -> dict[str, Any]:
    """Whether the causes were named correctly, and how far the shares are off."""
    named = [finding.cause for finding in explanation.findings[: len(case.planted)]]
    off = {share.cause: float(share.best - case.truth.get(share.cause, 0.0)) for share in explanation.shares}
    worst = max(off, key=lambda cause: abs(off[cause]))
    return {
        "number": case.number,
        "workers": case.workers,
        "planted": list(case.planted),
        "named": named,
        "right": named == list(case.planted),
        "worst": worst,
        "off": off[worst],
        "truth": {cause: case.truth[cause] for cause in case.planted},
        "sentence": explanation.findings[0].sentence if explanation.findings else "",
    }


def main() -> int:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--cases", type=int, default=CASES, help="the first so many (default: %(default)s)")
    args = arguments.parse_args()
    rows = []
    for case in cases(args.cases):
        with tempfile.TemporaryDirectory() as folder:
            row = judged(case, explained(case, Path(folder)))
        rows.append(row)
        say(
            f"{case.number}: {' + '.join(case.planted)}: {'right' if row['right'] else row['named']}, "
            f"shares within {abs(row['off']) * 100:.1f} points ({row['worst']})"
        )
    named = sum(row["right"] for row in rows) / len(rows)
    close = sum(abs(row["off"]) <= POINTS for row in rows) / len(rows)
    return publish(
        [
            Claim(
                name="cases named right",
                ratio={"value": named, "low": None, "high": None},
                n=len(rows),
                claim=f"at least {LEAST_NAMED:.0%}",
                holds=named >= LEAST_NAMED,
            ),
            Claim(
                name="cases with all shares within 10 points",
                ratio={"value": close, "low": None, "high": None},
                n=len(rows),
                claim=f"at least {LEAST_NAMED:.0%}",
                holds=close >= LEAST_NAMED,
            ),
        ],
        as_json=args.json,
        cases=rows,
    )


if __name__ == "__main__":
    sys.exit(main())
