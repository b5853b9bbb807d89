"""How time and memory of `plan`, `compare` and `report --html` grow with a store: 100 and 1 000 trials × 10 runs.

Records are made from a seed and were never run. They are stored like real ones, with 30 steps of each rank, the meter
and 6 KB of facts, in a folder that is removed afterwards. The commands are the real ones, each in a separate process.
Measured are the wall time from start to exit, as the median of several runs, and the peak of resident memory.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests")]

from claims import parser, say  # noqa: E402
from paceline.plan import Trial  # noqa: E402
from paceline.prepared import PreparedStudy  # noqa: E402
from paceline.record import Record, Store  # noqa: E402
from paceline.record.machines import machines_of  # noqa: E402
from paceline.record.meter import meter_table  # noqa: E402
from paceline.run.host_state import machine  # noqa: E402
from paceline.spec import load_study  # noqa: E402
from records import make_record  # noqa: E402

RUNS, STEPS, WARMUP = 10, 28, 2
TURNS = 3
"""How often each command is run; the median counts."""
MOST_S: Mapping[str, float] = {"plan": 1.0, "compare": 5.0, "report": 10.0}
"""Limits on the larger store, from the start of the process to its end."""
MOST_BYTES = 500e6
MOST_GROWTH = 12.0
"""Allowed growth for ten times as many trials: proportional, plus a fifth."""

STUDY = """
[study]
name = "{name}"
question = "Which setting trains fastest, and how does it scale?"

[workload]
model = {models}
batch_per_worker = [8, 16, 32, 64, 128]

[framework]
name = "null"

[framework.null]
time = "law"
bucket_bytes = {buckets}

[cluster]
workers_per_host = [1, 2, 3, 4, 8]

[measure]
warmup_steps = {warmup}
steps = {steps}
repeats = {runs}
"""
SIZES: Mapping[str, Mapping[str, Sequence[object]]] = {
    "small": {"models": ["mlp", "lenet5"], "buckets": [1_000_000, 2_000_000]},
    "large": {
        "models": ["mlp", "lenet5", "resnet20", "resnet32"],
        "buckets": [1_000_000 * 2**power for power in range(10)],
    },
}
"""2 × 5 × 5 × 2 and 4 × 5 × 5 × 10 trials: more questions, and more answers to each."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One command on one store."""

    name: str
    runs: int
    seconds: float
    peak_bytes: int
    growth: float | None
    """Seconds ÷ those on the smaller store; None on the smaller store itself."""
    holds: bool
    """Whether it is within the limits; the smaller store has none."""


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="paceline-scale-") as folder:
        for size in SIZES:
            began = time.perf_counter()
            study, store, runs = build(Path(folder), size)
            say(f"{size}: {runs} runs written in {time.perf_counter() - began:.0f} s")
            before = {row.name: row for row in rows}
            rows += [measured(name, study, store, runs, before.get(name)) for name in MOST_S]
    if args.json:
        print(json.dumps({"rows": [asdict(row) for row in rows]}, indent=1))
    else:
        print(f"{'':8}  {'runs':>6}  {'seconds':>8}  {'peak MB':>8}  {'growth':>7}")
        for row in rows:
            growth = "" if row.growth is None else f"{row.growth:.1f} ×"
            mark = "" if row.growth is None else "  holds" if row.holds else "  FAILS"
            print(f"{row.name:8}  {row.runs:6}  {row.seconds:8.2f}  {row.peak_bytes / 1e6:8.0f}  {growth:>7}{mark}")
    return 0 if all(row.holds for row in rows) else 1


def build(folder: Path, size: str) -> tuple[Path, Path, int]:
    """A study and a store with all of its runs."""
    study, store = folder / f"{size}.toml", folder / size
    axes = {name: json.dumps(list(values)) for name, values in SIZES[size].items()}
    study.write_text(STUDY.format(name=size, warmup=WARMUP, steps=STEPS, runs=RUNS, **axes), encoding="utf-8")
    trials = PreparedStudy.of(load_study(study)).trials
    here = machine()
    with Store.open(store, create=True) as opened:
        for repeat in range(RUNS):
            opened.add_all(record_of(trial, place, repeat, here) for place, trial in enumerate(trials))
    return study, store, RUNS * len(trials)


def record_of(trial: Trial, place: int, repeat: int, here: Mapping[str, object]) -> Record:
    """A run whose step follows a law: work by batch, exchange by workers, and a setting that matters a little."""
    bucket = float(trial.framework.knobs["bucket_bytes"])
    work = 0.004 + 0.0009 * trial.workload.batch_per_worker
    exchange = 0.003 * (trial.workers - 1) * (1 + abs(bucket - 1.6e7) / 1e9)
    used = {"rss_bytes": 3e8, "cpu_s": 1.0, "read_bytes": 0.0, "written_bytes": 0.0}
    processes = {f"worker{rank}": used for rank in range(trial.ranks)}
    host = "localhost"
    return make_record(
        trial=trial,
        repeat=repeat,
        study="scale",
        machine=dict(here),
        started=1_700_000_000.0 + 4.0 * (repeat * 10_000 + place),
        step_s=work + exchange,
        transfer_s=exchange,
        jitter=0.02,
        random_seed=place * RUNS + repeat,
        facts={
            "threads": 1,
            "blas": "none",
            "bucket_bytes": [2**20] * 4,
            "variables": {"OMP_NUM_THREADS": "1"} | PADDING,
        },
        resources={"period_s": 0.5, "network": None},
        meter=meter_table([{"t_s": 0.5 * look, "processes": processes} for look in range(8)]),
        machines=machines_of([host], "local", here),
    )


PADDING = {f"VARIABLE_{number}": "a value as long as those that ranks are started with" for number in range(12)}
"""Real rows have about 7 KB of facts; with these the rows here have nearly as much."""


def measured(name: str, study: Path, store: Path, runs: int, smaller: Row | None) -> Row:
    """Run the command a few times; returns whether it is within its limits."""
    words = [name, str(study), "--store", str(store)]
    if name == "report":
        words += ["--html", str(study.with_suffix(".html"))]
    turns = [once(words, study.with_suffix(".peak")) for _ in range(TURNS)]
    seconds, peak = statistics.median(s for s, _ in turns), max(peak for _, peak in turns)
    growth = None if smaller is None else seconds / smaller.seconds
    within = seconds <= MOST_S[name] and peak <= MOST_BYTES and (growth or 0.0) <= MOST_GROWTH
    say(f"{name}: {seconds:.2f} s, {peak / 1e6:.0f} MB")
    return Row(name=name, runs=runs, seconds=seconds, peak_bytes=peak, growth=growth, holds=within if smaller else True)


PROGRAM = """
import sys
from paceline.cli import main
code = main(sys.argv[2:])
with open("/proc/self/status") as status, open(sys.argv[1], "w") as peak:
    peak.write(next(line.split()[1] for line in status if line.startswith("VmHWM")))
sys.exit(code)
"""
"""The command, which reports its own peak at the end. The system's count for a child includes the memory of the
parent at the moment of the fork."""


def once(words: Sequence[str], peak: Path) -> tuple[float, int]:
    """Seconds and peak bytes of a command, from the start of its process to the end."""
    began = time.perf_counter()
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(peak), *words], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if ended.returncode:
        raise SystemExit(f"paceline {' '.join(words)} ended with {ended.returncode}:\n{ended.stderr}")
    return seconds, int(peak.read_text()) * 1024


if __name__ == "__main__":
    sys.exit(main())
