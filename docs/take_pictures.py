"""Take the pictures of the report in docs/pictures from our own validation records, in Chromium.

Run it by hand after changing how a page looks, and look at what comes out: .venv/bin/python docs/take_pictures.py
(`make test-browser` installs what it needs). tests/unit/test_docs.py says when pictures are out of date.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from paceline.cli import main as paceline

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "validation" / "records" / "lab.zip"
STUDY = ROOT / "studies" / "predict" / "resnet44.toml"
PICTURES = ROOT / "docs" / "pictures"
DRAWN_BY = PICTURES / "drawn-by.txt"
"""Checksum of the code that the pictures were taken with."""
LOOKS = (
    "page.css",
    "page.js",
    "page.py",
    "html.py",
    "findings_html.py",
    "curve.py",
    "charts.py",
    "svg.py",
    "glyphs.py",
    "palette.py",
    "figures/*.py",
)
"""What a page looks like, in src/paceline/report."""
WIDE, NARROW = 1100, 400


def looks() -> str:
    """Checksum of all that decides how a page looks."""
    report = ROOT / "src" / "paceline" / "report"
    found = hashlib.sha256()
    for path in sorted(path for pattern in LOOKS for path in report.glob(pattern)):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def report_of(folder: Path) -> Path:
    """The page of the committed records, with their model."""
    page = folder / "report.html"
    for words in (
        ["import", str(RECORDS)],
        ["calibrate", str(STUDY), "--no-run"],
        ["report", str(STUDY), "--html", str(page)],
    ):
        if paceline([*words, "--store", str(folder / "store")]) != 0:
            sys.exit(f"paceline {' '.join(words)}: see above")
    return page


def take(file: Path, folder: Path) -> None:
    """Where a step goes, in light; scaling in the dark; the top of the page on a narrow screen."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browser.browser_rig import Opened, chromium, missing  # noqa: PLC0415  a rig of the tests, found only now

    if lack := missing():
        sys.exit(lack)
    with chromium(folder / "profile") as context:
        light, dark = Opened(context, file, width=WIDE), Opened(context, file, width=WIDE, dark=True)
        light.page.locator("#phases").screenshot(path=PICTURES / "report-light.png")
        dark.page.locator("#scaling figure").first.screenshot(path=PICTURES / "report-dark.png")
        Opened(context, file, width=NARROW).page.screenshot(path=PICTURES / "report-narrow.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        take(report_of(Path(made)), Path(made))
    DRAWN_BY.write_text(f"{looks()}\n", encoding="ascii")
