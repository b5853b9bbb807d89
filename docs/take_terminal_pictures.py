"""Take the pictures of the terminal in docs/pictures: what `paceline compare` prints for our own validation records.

Run it by hand after changing what the terminal shows, and look at the pictures:
.venv/bin/python docs/take_terminal_pictures.py [--png FOLDER]. With --png it also draws, with Chromium, pictures that
nobody commits: 80 and 160 columns, light, dark, without colour, and what a pipe gets.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME, TerminalTheme

from paceline.cli import main as paceline
from paceline.report.colours import STYLES, Words
from paceline.report.text import results_text
from paceline.snapshot import Snapshot
from paceline.spec import load_study

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "validation" / "records" / "frameworks.zip"
PICTURES = ROOT / "docs" / "pictures"
STUDY = """[study]
name = "frameworks"
question = "JAX or TensorFlow: which trains ResNet-20 faster, and what does a second host bring?"
[workload]
model = "resnet20"
batch_per_worker = 8
[framework]
name = ["jax", "tensorflow"]
[cluster]
site = "lab"
hosts = [1, 2]
network = "1GbE"
[cluster.lab]
core_share = 0.5
[measure]
warmup_steps = 3
steps = 30
repeats = 5
"""
"""Some of the trials of studies/predict/frameworks.toml: few enough for one picture."""
LIGHT = TerminalTheme(
    (255, 255, 255),
    (36, 41, 47),
    [
        (36, 41, 47),
        (207, 34, 46),
        (17, 99, 41),
        (154, 103, 0),
        (9, 105, 218),
        (130, 80, 223),
        (27, 124, 131),
        (110, 119, 129),
    ],
    [
        (87, 96, 106),
        (164, 14, 38),
        (26, 127, 55),
        (99, 60, 1),
        (33, 139, 255),
        (164, 117, 249),
        (49, 146, 170),
        (140, 149, 159),
    ],
)
"""A light terminal, dark enough letters on white."""
THEMES = {"light": LIGHT, "dark": SVG_EXPORT_THEME}


def printed(folder: Path, columns: int) -> str:
    """The output of the command at a width, without colour, as on a pipe."""
    comparison = Snapshot.of(load_study(folder / "frameworks.toml"), folder / "store").comparison
    return results_text(comparison, columns)


def picture(text: str, theme: TerminalTheme, columns: int, *, colour: bool = True) -> str:
    """The text as a terminal shows it, as SVG that needs nothing from elsewhere."""
    terminal = Console(
        file=io.StringIO(),
        record=True,
        width=columns,
        force_terminal=True,
        color_system="standard" if colour else None,
        theme=STYLES,
        highlighter=Words() if colour else None,
        highlight=colour,
        markup=False,
    )
    terminal.print(f"$ paceline compare frameworks.toml\n{text}", soft_wrap=True)
    svg = terminal.export_svg(title="paceline", theme=theme, unique_id="terminal")
    # Rich asks a server for its font: the reader's own will do.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")


def draw_png(svg: Path, png: Path) -> None:
    """The picture as Chromium shows it."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("no chromium: make test-browser installs it")
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg.read_text(encoding="utf-8"))
    assert box
    size = ",".join(str(round(float(side))) for side in box.groups())
    flags = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={size}", f"--screenshot={png}"]
    subprocess.run([chromium, *flags, svg.resolve().as_uri()], check=True, capture_output=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--png", metavar="FOLDER", type=Path, help="also draw all variants, to look at")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "frameworks.toml").write_text(STUDY, encoding="utf-8")
        with redirect_stdout(io.StringIO()):
            if paceline(["import", str(RECORDS), "--store", str(folder / "store")]) != 0:
                sys.exit("the records cannot be read")
        texts = {columns: printed(folder, columns) for columns in (80, 160)}
    for theme, colours in THEMES.items():
        (PICTURES / f"terminal-{theme}.svg").write_text(picture(texts[80], colours, 80), encoding="utf-8")
    if args.png:
        args.png.mkdir(parents=True, exist_ok=True)
        for columns, text in texts.items():
            (args.png / f"piped-{columns}.txt").write_text(text + "\n", encoding="utf-8")
            for theme, colours in THEMES.items():
                for kind in ("colour", "no-color"):
                    svg = args.png / f"{theme}-{columns}-{kind}.svg"
                    svg.write_text(picture(text, colours, columns, colour=kind == "colour"), encoding="utf-8")
                    draw_png(svg, svg.with_suffix(".png"))


if __name__ == "__main__":
    main()
