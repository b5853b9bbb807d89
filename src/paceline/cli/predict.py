"""`paceline predict [STUDY]`: step time, throughput and efficiency of what was never run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.cli.output import add_common, command, emit, say, show, tell_outdated, width
from paceline.cli.parser import amount, whole
from paceline.cli.subcommands import Subcommands
from paceline.errors import PacelineError
from paceline.folders import store_folder
from paceline.spec import load_study
from paceline.units import BYTES_PER_SECOND, parse_quantity

if TYPE_CHECKING:
    from paceline.cli.guesses import Guesses
    from paceline.model.equations.conditions import Conditions
    from paceline.model.fitting.calibration import Calibration
    from paceline.model.forecast.expenses import Rates
    from paceline.model.forecast.scaling import ScalingForecast

WORKERS = "1..64"
MOST_WORKERS = 1 << 20
"""Asked for at once; beyond, what the model says of the slowest of them means nothing."""


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("predict", help="predict the step time of configurations that were never run")
    parser.add_argument(
        "study", nargs="?", help="study (TOML) that was calibrated; without it: all of the store, or a guess"
    )
    parser.add_argument("--workers", default=WORKERS, help="e.g. 2..4096 (doubling) or 1,3,6 (default: %(default)s)")
    parser.add_argument("--workers-per-host", type=whole, default=1, help="default: %(default)s")
    batch = parser.add_mutually_exclusive_group()
    batch.add_argument("--batch", type=whole, help="samples per worker; by default the largest that was run")
    batch.add_argument("--batch-global", type=whole, help="samples per step over all workers: strong scaling")
    parser.add_argument("--network", help="between hosts: 10GbE, or a bandwidth such as 25Gbit; by default as measured")
    parser.add_argument("--framework", help="which one, if several were calibrated")
    parser.add_argument("--strategy", help="which one, if several were calibrated")
    parser.add_argument("--model", help="which one, if several were calibrated; with --device: which to guess")
    parser.add_argument("--device", help="guess from data sheets, e.g. V100-SXM2; nothing needs to be measured")
    parser.add_argument(
        "--what-if",
        metavar="CHANGES",
        help="e.g. bandwidth=x4,compression=fp16,bucket=5MB; "
        "by simulation: slow-host=x2, unequal-hosts=1/1.5, oversubscription=x4, jobs=2",
    )
    parser.add_argument(
        "--helps-most", action="store_true", help="which single change helps most, best bucket size included"
    )
    parser.add_argument(
        "--epoch", type=whole, metavar="SAMPLES", help="samples per epoch: prints its time, cost and energy"
    )
    parser.add_argument("--price", type=amount, metavar="P", help="price per host and hour, in your currency")
    parser.add_argument("--power", type=amount, metavar="W", help="power per host, in watts")
    parser.add_argument("--memory", metavar="SIZE", help="memory per worker, e.g. 16GB: says what fits")
    parser.add_argument("--picture", metavar="FILE.svg", help="draw the scaling curve")
    parser.add_argument("--trace", metavar="FILE.json", help="one predicted step for chrome://tracing and Perfetto")
    parser.add_argument("--chakra", metavar="FILE.et", help="one predicted step as a Chakra execution trace")
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    from paceline.model.forecast.scaling import forecast
    from paceline.model.forecast.what_if import parse_changes

    workers, rates = counts(args.workers), _rates(args)
    changes = parse_changes(args.what_if) if args.what_if else []
    calibrations, batch = _calibrations(args)
    forecasts = [
        forecast(
            calibration,
            _conditions(args, calibration, workers, batch),
            changes,
            rank_changes=args.helps_most,
        )
        for calibration in calibrations
    ]
    first = forecasts[0]
    if args.picture:
        _draw(args, forecasts)
    if args.trace or args.chakra:
        _trace(args, first)
    if args.json:
        emit({"families": [family.to_json(rates) for family in forecasts], **first.to_json(rates)})
    else:
        from paceline.report.forecast import forecast_text

        show("\n\n".join(forecast_text(family, rates, width()) for family in forecasts))
        change = ["--what-if", first.helps_most[0].change] if first.helps_most else ["--helps-most"]
        say(f"next: {command(args, 'predict', *_asked(args), *change)}")
    return 0


def _asked(args: argparse.Namespace) -> list[str]:
    """The question again, as words of a command."""
    flags = ("device", "model", "framework", "strategy", "network", "batch", "batch_global")
    flag_values = [(f"--{name.replace('_', '-')}", getattr(args, name)) for name in flags]
    words = [word for flag, value in flag_values if value is not None for word in (flag, str(value))]
    sizes = ["--workers", args.workers] if args.workers != WORKERS else []
    return [*([args.study] if args.study else []), *words, *sizes]


def counts(text: str) -> list[int]:
    """2..4096 doubling, or a list.

    Raises:
        PacelineError: neither.
    """
    try:
        if ".." in text:
            low, high = (int(part) for part in text.split(".."))
            workers = [low]
            while workers[-1] * 2 <= high:
                workers.append(workers[-1] * 2)
            if workers[-1] != high:
                workers.append(high)
        else:
            workers = [int(part) for part in text.split(",")]
    except ValueError:
        workers = []
    if not workers or min(workers) < 1 or sorted(workers) != workers:
        raise PacelineError(f"--workers {text}: should be increasing numbers", hint="write it like 2..4096 or 1,2,4")
    if workers[-1] > MOST_WORKERS:
        raise PacelineError(
            f"--workers {text}: at most {MOST_WORKERS} workers can be predicted", hint="write it like 2..4096"
        )
    return workers


def _calibrations(args: argparse.Namespace) -> tuple[Sequence[Calibration], int | None]:
    """(the families that are asked about, samples per worker); None for the largest batch that was run."""
    from paceline.model.fitting.kept import chosen, kept_calibrations

    if args.device:
        guessed = _guesses(args)
        return guessed.calibrations, guessed.batch
    wanted = {key: getattr(args, key) for key in ("framework", "strategy", "model") if getattr(args, key)}
    if not args.study:
        return chosen(kept_calibrations(store_folder(args.store)), wanted), args.batch
    from paceline.snapshot import Snapshot

    snapshot = Snapshot.of(load_study(args.study), store_folder(args.store))
    if not snapshot.calibrations:
        raise PacelineError(
            f"{args.study}: not calibrated in {snapshot.folder}",
            hint=f"calibrate it: {command(args, 'calibrate', args.study)}",
        )
    tell_outdated(args, snapshot, args.study)
    return chosen(snapshot.calibrations, wanted), args.batch


def _guesses(args: argparse.Namespace) -> Guesses:
    from paceline.cli.guesses import guesses

    return guesses(
        args.device,
        study=load_study(args.study) if args.study else None,
        model=args.model,
        framework=args.framework,
        strategy=args.strategy,
        batch=args.batch or args.batch_global,
    )


def _conditions(
    args: argparse.Namespace, calibration: Calibration, workers: Sequence[int], batch: int | None
) -> list[Conditions]:
    """One per number of workers."""
    from paceline.model.forecast.predict import conditions_for

    bandwidth, latency = network(args.network)
    return [
        conditions_for(
            calibration,
            workers=count,
            workers_per_host=args.workers_per_host,
            batch=batch if args.batch_global is None else _part(args.batch_global, count),
            bandwidth=bandwidth,
            latency_s=latency,
        )
        for count in workers
    ]


def _part(batch_global: int, workers: int) -> int:
    """Samples per worker of a global batch."""
    if batch_global % workers:
        raise PacelineError(
            f"--batch-global {batch_global}: cannot be divided equally among {workers} workers",
            hint="choose workers that divide it",
        )
    return batch_global // workers


def network(text: str | None) -> tuple[float | None, float | None]:
    """Bytes a second and one-way seconds of a network by name or by bandwidth."""
    from paceline.model.forecast.catalogue import INTERCONNECTS
    from paceline.spec.networks import NETWORKS

    if text is None:
        return None, None
    if text in NETWORKS:
        return NETWORKS[text].bandwidth_bytes_per_s, NETWORKS[text].latency_s
    if text in INTERCONNECTS:
        return INTERCONNECTS[text].bytes_per_s, None
    try:
        rate = parse_quantity(text, BYTES_PER_SECOND)
        if not rate > 0:
            raise ValueError(f"{text!r} should be above zero")
        return rate, None
    except ValueError as error:
        names = ", ".join([*NETWORKS, *INTERCONNECTS])
        raise PacelineError(f"--network: {error}", hint=f"or a name: {names}") from None


def _rates(args: argparse.Namespace) -> Rates:
    from paceline.model.forecast.expenses import Rates
    from paceline.units import BYTES

    memory = None
    if args.memory:
        try:
            memory = parse_quantity(args.memory, BYTES)
            if not memory > 0:
                raise ValueError(f"{args.memory!r} should be above zero")
        except ValueError as error:
            raise PacelineError(f"--memory: {error}", hint="write it like --memory 16GB") from None
    return Rates(epoch_samples=args.epoch, price=args.price, power_w=args.power, memory_bytes=memory)


def _draw(args: argparse.Namespace, forecasts: Sequence[ScalingForecast]) -> None:
    from paceline.record.export import write_text
    from paceline.report.curve import scaling_svg

    write_text(scaling_svg({family.label: family.predictions for family in forecasts}), Path(args.picture))
    say(f"written: {args.picture}")


def _trace(args: argparse.Namespace, forecast: ScalingForecast) -> None:
    from paceline.model.foreign.traces import chakra_trace, chrome_trace, predicted_spans
    from paceline.record.export import write_bytes, write_text

    last = forecast.predictions[-1]
    if last.conditions.is_simulated:
        raise PacelineError(
            "--trace and --chakra need a modelled step, and this step is simulated",
            hint="leave slow-host, unequal-hosts, oversubscription and jobs out of --what-if",
        )
    spans = predicted_spans(forecast.calibration, last.conditions)
    if args.trace:
        write_text(chrome_trace(spans, by=last.by), Path(args.trace))
        say(f"written: {args.trace}")
    if args.chakra:
        write_bytes(chakra_trace([span for span in spans if span.rank == 0]), Path(args.chakra))
        say(f"written: {args.chakra}")
