"""`paceline recommend STUDY`: recommends a configuration for a goal within limits, and can run the deciding trials."""

from __future__ import annotations

import argparse
import shlex

from paceline.cli.output import add_common, command, emit, say, show, tell_outdated, width
from paceline.cli.subcommands import Subcommands
from paceline.errors import PacelineError
from paceline.folders import store_folder
from paceline.record.failures import none_ended_well
from paceline.spec import load_study
from paceline.units import SECONDS, parse_quantity

BUDGET = "10min"
GOAL = "throughput"


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("recommend", help="what to choose for a goal within limits")
    parser.add_argument("study", help="study file (TOML) that was run, preferably calibrated")
    parser.add_argument("--goal", default=GOAL, help="throughput, epoch-time, cost or energy (default: %(default)s)")
    parser.add_argument(
        "--within",
        default="",
        metavar="LIMITS",
        help='e.g. "workers<=8,hosts<=4,memory<=16GB,framework=torch|jax,budget<=100,deadline<=12h"',
    )
    parser.add_argument("--epoch", type=float, metavar="SAMPLES", help="samples per epoch")
    parser.add_argument("--price", type=float, metavar="P", help="price per host and hour, in your currency")
    parser.add_argument("--power", type=float, metavar="W", help="power per host, in watts")
    parser.add_argument(
        "--from", dest="present", metavar="TRIAL", help="the present choice; by default the first trial"
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="CLASS",
        help="rank strategies of this class too: approximate, asynchronous",
    )
    parser.add_argument(
        "--try", dest="try_", action="store_true", help="run the trials that would settle it, then recommend again"
    )
    parser.add_argument(
        "--budget", default=BUDGET, help="time for that, checked between its studies (default: %(default)s)"
    )
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    from paceline.campaigns import Recommended, try_out
    from paceline.cli.progress import Narrator
    from paceline.recommend.objective import Prices, wish_for
    from paceline.run import Budget
    from paceline.workbench import Workbench

    wish = wish_for(
        args.goal,
        Prices(epoch=args.epoch, price=args.price, power=args.power),
        args.within,
        allow=tuple(args.allow),
        present=args.present,
    )
    try:
        seconds = parse_quantity(args.budget, SECONDS)
    except ValueError as error:
        raise PacelineError(f"--budget: {error}", hint="write it like --budget 10min") from None
    bench = Workbench(load_study(args.study), store_folder(args.store))
    snapshot = bench.snapshot()
    if snapshot.study.of_collectives:
        raise PacelineError(
            f"{args.study}: measures collectives and trains nothing",
            hint="recommend for a study with a model: paceline recommend STUDY",
        )
    if not snapshot.records:
        raise PacelineError(
            f"{args.study}: nothing is recorded yet in {snapshot.folder}",
            hint=f"measure it: {command(args, 'calibrate', args.study)}",
        )
    if failed := none_ended_well(args.study, snapshot.records):
        raise failed
    if args.try_:
        answer = try_out(bench, wish, Narrator(), Budget(seconds=seconds))
    else:
        answer = Recommended(advice=snapshot.advice(wish), snapshot=snapshot)
    tell_outdated(args, answer.snapshot, args.study)
    if args.json:
        tried = [outcome.to_json() for outcome in answer.tried]
        emit({"study": snapshot.study.name, **answer.advice.to_json(), "tried": tried})
    else:
        from paceline.report.advice import advice_text

        show(advice_text(answer.advice, width(), answer.tried))
        again = command(args, "recommend", args.study, *_asked(args), "--try")
        say(f"next: {again if answer.advice.settling else command(args, 'report', args.study)}")
    return 0


def _asked(args: argparse.Namespace) -> list[str]:
    """Returns the flags of this recommendation as words of a command."""
    flags = {"goal": GOAL, "within": "", "epoch": None, "price": None, "power": None}
    given = {name: getattr(args, name) for name in flags}
    words = [[f"--{name}", _word(value)] for name, value in given.items() if value != flags[name]]
    words += [["--from", args.present]] if args.present else []
    words += [["--allow", word] for word in args.allow]
    return [word for pair in words for word in pair]


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else shlex.quote(str(value))
