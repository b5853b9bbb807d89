"""Is an adapter as fast as a program written after its framework's documentation? It takes about 20 minutes for seven
frameworks and needs a quiet machine.

For each framework two programs, ours and a hand-written one (`handwritten/`), run at the same time in the framework's
own environment on the same core. They take turns in short blocks of steps, A B then B A, so that drift affects both.
Neighbouring blocks give a ratio, the trimmed mean of the ratios of a pair of processes is one number, and the interval
is over pairs of fresh processes. A framework fails when its whole interval lies above the limit.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import trim_mean

from claims import Claim, parser, say, with_ends
from paceline.environments import examined
from paceline.errors import EnvironmentBuildError, PacelineError
from paceline.frameworks import Framework, load_framework
from paceline.plan import Trial
from paceline.prepared import PreparedStudy, environment_of
from paceline.run import machine_lock
from paceline.spec import read_study
from paceline.stats import FEWEST_WITH_SPREAD, mean_interval
from rivals import SCRIPTS, Rivals

LIMIT = 1.02
"""A framework fails when all of its interval lies above."""
BATCH = 32
WARMUP = 5
BLOCK_S = 0.3
"""Approximate length of a block: changing turns (cold caches, a wake-up) costs little of it, and most drift is
slower."""
TRIMMED = 0.2
"""Share of the ratios of a pair of processes left out at either end, because a disturbance affects one block."""
MINIMUM_STEPS = 2
CALIBRATIONS = 5
"""Blocks of a single step; the fastest determines how many steps a block has."""


@dataclass(frozen=True, kw_only=True)
class Turns:
    """Seconds per step of a pair of processes, block by block; blocks with the same index are neighbours."""

    ours: tuple[float, ...]
    written: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return middle([our_s / written_s for our_s, written_s in zip(self.ours, self.written, strict=True)])


def middle(values: Sequence[float]) -> float:
    """Geometric mean without the most extreme values."""
    return float(np.exp(trim_mean(np.log(values), TRIMMED)))


def claim_of(name: str, model: str, pairs: Sequence[Turns]) -> Claim:
    """The claim on one framework from all of its pairs of processes."""
    ratio = mean_interval([pair.ratio for pair in pairs], unit="1", least_runs=FEWEST_WITH_SPREAD)
    return Claim(
        name=f"{name} ÷ hand-written, {model}",
        n=len(pairs),
        ratio=with_ends(ratio),
        claim=f"the interval reaches below {LIMIT}",
        holds=ratio.low is not None and ratio.low <= LIMIT,
        facts={
            "framework": name,
            "model": model,
            "hand_written_s": mean_interval([middle(pair.written) for pair in pairs], unit="s").value,
            "ours_s": mean_interval([middle(pair.ours) for pair in pairs], unit="s").value,
            "pairs": [{"ratio": pair.ratio, "ours_s": pair.ours, "hand_written_s": pair.written} for pair in pairs],
        },
    )


def trial_of(name: str, model: str) -> Trial:
    study = read_study(
        {
            "study": {"name": "adapters"},
            "workload": {"model": model, "batch_per_worker": BATCH},
            "framework": {"name": name},
            "cluster": {"workers_per_host": 1, "threads_per_worker": 1},
            "measure": {"warmup_steps": WARMUP, "steps": 1, "repeats": 1},
        }
    )
    (trial,) = PreparedStudy.of(study).trials
    return trial


def block_steps_of(rivals: Rivals) -> int:
    """Number of steps per block, measured by a process that is not used afterwards."""
    with rivals.written() as program:
        step_s = min(program.take(1) for _ in range(CALIBRATIONS))
    return max(MINIMUM_STEPS, math.ceil(BLOCK_S / step_s))


def take_turns(rivals: Rivals, block_steps: int, blocks: int, *, ours_first: bool) -> Turns:
    """Measure one pair of fresh processes. The order of starting, which affects memory layout, alternates."""
    taken: dict[str, list[float]] = {"ours": [], "written": []}
    starts = {"ours": lambda: rivals.ours(block_steps, blocks + 1), "written": rivals.written}
    order = ("ours", "written") if ours_first else ("written", "ours")
    with ExitStack() as stack:
        programs = {side: stack.enter_context(starts[side]()) for side in order}
        # Not counted: the first has lost its caches while the second was started.
        for program in programs.values():
            program.take(block_steps)
        for number in range(blocks):
            for side in order if number % 2 == 0 else reversed(order):
                taken[side].append(programs[side].take(block_steps))
    return Turns(ours=tuple(taken["ours"]), written=tuple(taken["written"]))


def why_unavailable(framework: Framework) -> str | None:
    """Build its environment; returns the reason if that fails."""
    environment = environment_of(framework)
    state = examined(environment)
    if state.state == "ready":
        return None
    if state.state == "unavailable":
        return f"{state.reason}; {state.fix}"
    say(f"environment {environment.name} is {state.state}; building it")
    try:
        environment.create(say)
    except EnvironmentBuildError as error:
        return error.message
    return None


def measure(framework: Framework, model: str, pairs: int, blocks: int) -> Claim:
    name, environment = framework.name, environment_of(framework)
    done: list[Turns] = []
    with machine_lock(say), tempfile.TemporaryDirectory() as folder:
        rivals = Rivals(framework, environment, trial_of(name, model), Path(folder))
        block_steps = block_steps_of(rivals)
        for number in range(pairs):
            began = time.monotonic()
            turns = take_turns(rivals, block_steps, blocks, ours_first=number % 2 == 0)
            done.append(turns)
            took = time.monotonic() - began
            left = took * (pairs - number - 1)
            say(
                f"{name} {number + 1}/{pairs}: {turns.ratio:.4f} (blocks of {block_steps} steps, {took:.0f} s; "
                f"{left:.0f} s to go)"
            )
    return claim_of(name, model, done)


def table(claims: Sequence[Claim], missing: Mapping[str, str]) -> str:
    lines = [f"{'framework':<18} {'hand-written':>12} {'ours':>10}  {'ratio':<24} verdict"]
    for claim in claims:
        value, low, high = (claim.ratio[key] for key in ("value", "low", "high"))
        interval = "" if low is None or high is None else f" ({low:.4f}–{high:.4f})"
        written, ours = (f"{claim.facts[key] * 1e3:.2f} ms" for key in ("hand_written_s", "ours_s"))
        ratio = f"{value:.4f}{interval}"
        mark = "holds" if claim.holds else "FAILS: all of it above the limit"
        lines.append(f"{claim.facts['framework']:<18} {written:>12} {ours:>10}  {ratio:<24} {mark}")
    lines += [f"{name:<18} {why}" for name, why in missing.items()]
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    made = parser(__doc__ or "")
    made.add_argument("--framework", choices=SCRIPTS, action="append", help="only this one; may be given again")
    made.add_argument(
        "--model",
        choices=("resnet20", "mlp"),
        default="resnet20",
        help="mlp: steps of a few milliseconds, where what we add to a step shows most (default: %(default)s)",
    )
    made.add_argument("--pairs", type=int, default=5, help="pairs of processes a framework (default: %(default)s)")
    made.add_argument("--blocks", type=int, default=16, help="blocks a process (default: %(default)s)")
    made.add_argument("--quick", action="store_true", help="2 pairs of 4 blocks: whether it works, not how it is")
    args = made.parse_args()
    if args.quick:
        args.pairs, args.blocks = 2, 4
    return args


def main() -> int:
    args = arguments()
    names = args.framework or list(SCRIPTS)
    claims: list[Claim] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    for number, name in enumerate(names):
        began = time.monotonic()
        try:
            framework = load_framework(name)
            if why := why_unavailable(framework):
                skipped[name] = f"skipped: {why}"
                say(f"{name} {skipped[name]}")
                continue
            claims.append(measure(framework, args.model, args.pairs, args.blocks))
        except PacelineError as error:
            failed[name] = f"FAILS: {error.message}"
            say(f"{name} {failed[name]}")
        left = (time.monotonic() - began) * (len(names) - number - 1)
        say(f"{number + 1} of {len(names)} frameworks; about {left / 60:.0f} min to go")
    if args.json:
        rows = [claim.to_json() for claim in claims]
        print(json.dumps({"rows": rows, "skipped": skipped, "failed": failed}, indent=1))
    else:
        print(table(claims, {**failed, **skipped}))
    return 0 if not failed and all(claim.holds for claim in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
