"""Take the pictures of the terminal in docs/pictures: what `paceline compare` writes on one, of committed records.

Run it by hand after changing what the terminal shows, and look at what comes out:
.venv/bin/python docs/take_terminal_pictures.py [--png FOLDER]. The command is run for real on a terminal; Rich only
turns what it wrote into SVG. With --png it also photographs xterm (Debian: xvfb xterm imagemagick fonts-dejavu-core),
pictures that nobody commits: each command at 80 and 160 columns, light, dark, without colour, and what a pipe gets.
"""

from __future__ import annotations

import argparse
import io
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from rich.text import Text

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
RUN = """[study]
name = "run"
[workload]
model = "resnet20"
batch_per_worker = 8
[framework]
name = "null"
[framework.null]
time = "real"
[cluster]
workers_per_host = [1, 2]
[measure]
steps = 100
repeats = 4
"""
"""A study to photograph while it runs."""
COMMANDS = {
    "compare": ("compare", "frameworks.toml"),
    "compare-all": ("compare", "frameworks.toml", "--all"),
    "explain": ("explain", "frameworks.toml"),
    "recommend": ("recommend", "frameworks.toml"),
    "run": ("run", "run.toml", "--again"),
}
"""Name of a photograph → what is typed."""
BAR_SEEN_S = 12.0
"""A study that runs is photographed so long after its start, with some results and a bar."""
PALETTES = {"light": ("white", "black"), "dark": ("black", "gray90")}
"""Background and letters of xterm."""
THEMES = {"light": DEFAULT_TERMINAL_THEME, "dark": SVG_EXPORT_THEME}
PACELINE = [sys.executable, "-m", "paceline"]


def written(folder: Path, words: Sequence[str], columns: int) -> str:
    """What the command writes on a terminal of so many columns, escape codes included."""
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(columns), "PACELINE_STORE": "store"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen([*PACELINE, *words], cwd=folder, env=environment, stdout=other, stderr=other)
    os.close(other)
    drawn = b""
    try:
        while part := os.read(main, 65536):
            drawn += part
    except OSError:  # the other end is closed
        pass
    os.close(main)
    if process.wait() != 0:
        sys.exit(drawn.decode())
    return drawn.decode().replace("\r\n", "\n")


def picture(text: str, theme: TerminalTheme, columns: int) -> str:
    """What was written, as SVG that needs nothing from elsewhere."""
    terminal = Console(file=io.StringIO(), record=True, width=columns, force_terminal=True, color_system="256")
    terminal.print(Text.from_ansi(text), soft_wrap=True)
    svg = terminal.export_svg(title="paceline", theme=theme, unique_id="terminal")
    # Rich asks a server for its font: the reader's own will do.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")


@contextmanager
def screen() -> Iterator[str]:
    """A screen that nobody sees, as the name of its display."""
    for program in ("Xvfb", "xterm", "import", "convert"):
        if shutil.which(program) is None:
            sys.exit(f"no program {program}: apt-get install xvfb xterm imagemagick fonts-dejavu-core")
    display = f":{os.getpid() % 1000 + 100}"
    server = subprocess.Popen(["Xvfb", display, "-screen", "0", "1600x3000x24", "-noreset"], stderr=subprocess.DEVNULL)
    time.sleep(2.0)
    try:
        yield display
    finally:
        server.terminate()
        server.wait()


def photograph(
    folder: Path, words: Sequence[str], png: Path, *, display: str, columns: int, palette: str, colour: bool
) -> None:
    """What a real terminal shows of a command when it has ended, or of a study while it runs."""
    paper, ink = PALETTES[palette]
    ended = folder / "ended"
    ended.unlink(missing_ok=True)
    shown = f"{' '.join([*PACELINE, *words])}; touch {ended}; sleep 600"
    look = ["-fa", "DejaVu Sans Mono", "-fs", "9", "-bg", paper, "-fg", ink, "-geometry", f"{columns}x180+0+0", "+sb"]
    environment = {**os.environ, "DISPLAY": display, "PACELINE_STORE": "store"} | ({} if colour else {"NO_COLOR": "1"})
    terminal = subprocess.Popen(["xterm", *look, "-e", "sh", "-c", shown], cwd=folder, env=environment)
    deadline = time.monotonic() + (BAR_SEEN_S if words[0] == "run" else 120.0)
    while not ended.exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(1.0)
    subprocess.run(["import", "-window", "root", str(png)], env=environment, check=True)
    subprocess.run(["convert", str(png), "-trim", "+repage", str(png)], check=True)
    terminal.terminate()
    terminal.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--png", metavar="FOLDER", type=Path, help="also photograph xterm in all variants, to look at")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "frameworks.toml").write_text(STUDY, encoding="utf-8")
        (folder / "run.toml").write_text(RUN, encoding="utf-8")
        written(folder, ("import", str(RECORDS)), 80)
        text = f"$ paceline compare frameworks.toml\n{written(folder, COMMANDS['compare'], 80)}"
        for theme, colours in THEMES.items():
            (PICTURES / f"terminal-{theme}.svg").write_text(picture(text, colours, 80), encoding="utf-8")
        if args.png:
            args.png.mkdir(parents=True, exist_ok=True)
            photograph_all(folder, args.png)


def photograph_all(folder: Path, pictures: Path) -> None:
    """Every command at two widths, light, dark and without colour; and its text on a pipe."""
    environment = {**os.environ, "PACELINE_STORE": "store"}
    for name, words in COMMANDS.items():
        with (pictures / f"{name}-piped.txt").open("w", encoding="utf-8") as pipe:
            subprocess.run([*PACELINE, *words], cwd=folder, env=environment, stdout=pipe, stderr=pipe, check=True)
    variants = [
        (columns, palette, colour)
        for columns in (80, 160)
        for palette, colour in (("light", True), ("dark", True), ("dark", False))
    ]
    with screen() as display:
        for name, words in COMMANDS.items():
            for columns, palette, colour in variants:
                png = pictures / f"{name}-{columns}-{palette if colour else 'no-color'}.png"
                photograph(folder, words, png, display=display, columns=columns, palette=palette, colour=colour)


if __name__ == "__main__":
    main()
