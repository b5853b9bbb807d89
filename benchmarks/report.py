"""How large the HTML report of a study with a million samples is, and how long a browser takes to show it.

Records are made from a seed and were never run: only the page is timed. Chromium opens it from disk, with a new profile
for each load. The time is from the start of the navigation to the end of `load`, by the browser's own clock.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests")]

from browser.browser_rig import Opened, chromium, missing  # noqa: E402
from claims import Claim, parser, publish, say  # noqa: E402
from paceline.report.html import page  # noqa: E402
from records import make_record  # noqa: E402
from report_data import make_report  # noqa: E402

LOADS = 5
MOST_BYTES = 5e6
MOST_S = 3.0


def main() -> int:
    args = parser(__doc__ or "").parse_args()
    if why := missing():
        say(f"skipped: {why}")
        return 0
    say("making a million samples")
    records = [
        make_record(knobs={"k": k}, workers=4, steps=12_500, step_s=0.05 + 0.01 * k, repeat=repeat)
        for k in range(4)
        for repeat in range(5)
    ]
    data = make_report(records=records)
    began = time.perf_counter()
    text = page(data)
    made_s = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(text, encoding="utf-8")
        say("showing it")
        taken = [_load_s(file, Path(folder) / f"profile{turn}") for turn in range(LOADS)]
        size = file.stat().st_size
    claims = [
        Claim(
            name="page, MB",
            ratio={"value": size / 1e6, "low": None, "high": None},
            claim="< 5",
            holds=size < MOST_BYTES,
            n=1,
        ),
        Claim(
            name="shown in a browser, s",
            claim="< 3 at worst",
            holds=max(taken) < MOST_S,
            n=LOADS,
            ratio={"value": statistics.median(taken), "low": min(taken), "high": max(taken)},
        ),
        Claim(
            name="made from a comparison, s",
            ratio={"value": made_s, "low": None, "high": None},
            claim="shown",
            holds=True,
            n=1,
        ),
    ]
    return publish(claims, as_json=args.json)


def _load_s(file: Path, profile: Path) -> float:
    with chromium(profile) as context:
        opened = Opened(context, file)
        taken: float = opened.ask("() => performance.getEntriesByType('navigation')[0].loadEventEnd")
    return taken / 1e3


if __name__ == "__main__":
    sys.exit(main())
