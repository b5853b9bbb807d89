"""Take the pictures in docs/pictures from our own validation records: pages in Chromium, and one figure as SVG.

Run it by hand after changing how a page looks, and look at the pictures: .venv/bin/python docs/take_pictures.py
(`make test-browser` installs what it needs). tests/unit/test_docs.py fails when pictures are out of date.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import tempfile
from pathlib import Path

from paceline.cli import main as paceline
from paceline.report.html import page

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "validation" / "records" / "lab.zip"
STUDY = ROOT / "studies" / "predict" / "resnet44.toml"
PICTURES = ROOT / "docs" / "pictures"
DRAWN_BY = PICTURES / "drawn-by.txt"
"""Checksum of the page that was drawn when the pictures were taken."""
IN_README = "scaling-weak-resnet44-batch-16-*.svg"
"""The figure of README.md, among those of `report --svg`: three networks, measured and predicted, with two knees."""
WIDE, NARROW = 1100, 400


def looks() -> str:
    """Checksum of how a page looks: a page of made-up records, as a browser would get it.

    It changes with styles, figures, sections and words, and stays when code is only moved or renamed. Numbers count to
    three digits, because the last ones differ between versions of SciPy.
    """
    sys.path.insert(0, str(ROOT / "tests"))
    from report_data import make_report  # noqa: PLC0415  a builder of the tests, found only now

    drawn = re.sub(r"\d+\.\d{3,}(?:e[-+]?\d+)?", lambda number: f"{float(number[0]):.3g}", page(make_report()))
    return hashlib.sha256(drawn.encode()).hexdigest()


def report_of(folder: Path) -> Path:
    """The page of the committed records, with their model, and its figures in a folder beside it."""
    html = folder / "report.html"
    for words in (
        ["import", str(RECORDS)],
        ["calibrate", str(STUDY), "--no-run"],
        ["report", str(STUDY), "--html", str(html), "--svg", str(folder / "figures")],
    ):
        if paceline([*words, "--store", str(folder / "store")]) != 0:
            sys.exit(f"paceline {' '.join(words)}: see above")
    return html


def take(file: Path, folder: Path) -> None:
    """Scaling as a figure; where a step goes, in light; scaling in the dark; the top of the page on a narrow screen."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browser.browser_rig import Opened, chromium, missing  # noqa: PLC0415  a rig of the tests, found only now

    if lack := missing():
        sys.exit(lack)
    (figure,) = (folder / "figures").glob(IN_README)
    shutil.copyfile(figure, PICTURES / "scaling.svg")
    with chromium(folder / "profile") as context:
        light, dark = Opened(context, file, width=WIDE), Opened(context, file, width=WIDE, dark=True)
        light.page.locator("#phases").screenshot(path=PICTURES / "report-light.png")
        dark.page.locator("#scaling figure").first.screenshot(path=PICTURES / "report-dark.png")
        Opened(context, file, width=NARROW).page.screenshot(path=PICTURES / "report-narrow.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        take(report_of(Path(made)), Path(made))
    DRAWN_BY.write_text(f"{looks()}\n", encoding="ascii")
