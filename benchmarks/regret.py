"""The loss from following a recommendation that could not know the best configuration.

It reads the records of studies and runs nothing. In each contest (the best on a network, the framework at a size) the
best measured configuration is held out and calibrations are fitted without it. The recommendation among the
configurations of the contest should then be as good as the best, or lose no more than 5 %.
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
from held_out import GOOD_ENOUGH, Regret, contests, held_out
from paceline.recommend.candidates import Basis, measured
from paceline.record.archive import unpack_archive
from paceline.snapshot import Snapshot
from paceline.spec import load_study
from paceline.stats import ratio_interval


def regrets(snapshot: Snapshot) -> list[Regret]:
    """The regret of every contest of a study."""
    basis = snapshot.basis

    @cache
    def without(trial: str) -> Basis:
        rest = snapshot.without(trial)
        # A stored calibration was fitted with what is held out.
        fitted = tuple(model.calibration for model in rest.models if model.evidence is not None)
        return replace(rest.basis, calibrations=fitted)

    contest_regrets = []
    for contest, rows in contests(measured(basis)[0]).items():
        say(contest)
        if (regret := held_out(contest, rows, basis, without)) is not None:
            contest_regrets.append(regret)
    return contest_regrets


@contextmanager
def store_of(place: Path) -> Iterator[Path]:
    """The folder of a store; an archive is unpacked to a temporary one."""
    if place.is_dir():
        yield place
        return
    with tempfile.TemporaryDirectory() as made:
        unpack_archive(place, Path(made))
        yield Path(made)


def claim(regret: Regret) -> Claim:
    ratio = ratio_interval(regret.best.rounds, regret.chosen.rounds).ratio
    return Claim(
        name=regret.contest,
        ratio=with_ends(ratio),
        claim=f"best ÷ chosen at most {1 + GOOD_ENOUGH}, or not told apart",
        holds=regret.holds,
        n=regret.configurations,
        facts=regret.to_json(),
    )


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("study", nargs="+", help="study files (TOML) that were run")
    made.add_argument("--store", default=".paceline", help="where records are, or an archive (default: %(default)s)")
    args = made.parse_args()
    with store_of(Path(args.store)) as folder:
        all_regrets = [regret for study in args.study for regret in regrets(Snapshot.of(load_study(study), folder))]
    if not all_regrets:
        say("no contest: no study has two configurations that may be ranked, with two runs each")
        return 1
    return publish([claim(regret) for regret in all_regrets], as_json=args.json)


if __name__ == "__main__":
    sys.exit(main())
