"""What is lost by following a recommendation that could not know the best configuration.

Reads what is recorded of studies and runs nothing. In each contest (the best on a network, the framework at a size) the
best that was measured is held out, calibrations are fitted without it, and a recommendation among the configurations of
the contest is followed: it should be as good as the best, or lose no more than 5 %.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from claims import Claim, parser, publish, say, with_ends
from paceline.recommend.candidates import Known, measured
from paceline.recommend.regret import GOOD_ENOUGH, Regret, contests, held_out
from paceline.record.archive import unpack_archive
from paceline.snapshot import Snapshot
from paceline.spec import load_study
from paceline.stats import ratio_interval


def regrets(snapshot: Snapshot) -> list[Regret]:
    """Of every contest of a study."""
    known = snapshot.choices

    @cache
    def without(trial: str) -> Known:
        rest = snapshot.without(trial)
        # A calibration that is only kept knows what is held out.
        fitted = tuple(model.calibration for model in rest.models if model.evidence is not None)
        return replace(rest.choices, calibrations=fitted)

    found = []
    for contest, rows in contests(measured(known)[0]).items():
        say(contest)
        if (one := held_out(contest, rows, known, without)) is not None:
            found.append(one)
    return found


@contextmanager
def store_of(place: Path) -> Iterator[Path]:
    """The folder of a store; of an archive one that is gone afterwards."""
    if place.is_dir():
        yield place
        return
    with tempfile.TemporaryDirectory() as made:
        unpack_archive(place, Path(made))
        yield Path(made)


def claim(one: Regret) -> Claim:
    ratio = ratio_interval(one.best.rounds, one.chosen.rounds).ratio
    return Claim(
        name=one.contest,
        ratio=with_ends(ratio),
        claim=f"best ÷ chosen at most {1 + GOOD_ENOUGH}, or not told apart",
        holds=one.holds,
        n=one.configurations,
        facts=one.to_json(),
    )


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("study", nargs="+", help="study files (TOML) that were run")
    made.add_argument("--store", default=".paceline", help="where records are, or an archive (default: %(default)s)")
    args = made.parse_args()
    with store_of(Path(args.store)) as folder:
        found = [one for study in args.study for one in regrets(Snapshot.of(load_study(study), folder))]
    if not found:
        say("no contest: no study has two configurations that may be ranked, with two runs each")
        return 1
    return publish([claim(one) for one in found], as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
