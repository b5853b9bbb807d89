"""Paceline as `pip install` leaves it: away from the checkout, the examples are there and run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.environments.installers import find_uv
from street import command_environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of a fresh virtual environment that has the wheel, and this environment's other packages."""
    folder = tmp_path_factory.mktemp("wheel")
    uv = find_uv()
    if uv is None:
        pytest.skip("no uv to build it with")
    # A copy, so that building writes nothing into the checkout.
    source = folder / "source"
    for name in ("src", "environments", "studies", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    built = subprocess.run(
        [str(uv), "build", "--wheel", "--out-dir", str(folder), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode and "hatchling" in built.stderr:
        pytest.skip(f"hatchling cannot be had: {built.stderr[-300:]}")
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    environment = folder / "venv"
    subprocess.run([str(uv), "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
    python = environment / "bin" / "python"
    subprocess.run([str(uv), "pip", "install", "-q", "--no-deps", "--python", str(python), str(wheel)], check=True)
    # The dependencies are those of this interpreter: what is tested is the wheel, not an index. They come after the
    # wheel on the path, and a .pth file of theirs (an editable Paceline) is not read there.
    (packages,) = (environment / "lib").glob("python*/site-packages")
    (here,) = {path for path in map(Path, sys.path) if path.name == "site-packages" and (path / "numpy").is_dir()}
    (packages / "dependencies.pth").write_text(f"{here}\n", encoding="utf-8")
    return environment / "bin" / "paceline"


def test_example_is_written_and_runs(installed: Path, tmp_path: Path) -> None:
    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(installed), *words],
            cwd=tmp_path,
            env=command_environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )

    written = typed("init", "--example", "null")
    ran = typed("run", "null.toml")

    assert (written.returncode, written.stdout) == (0, "written: null.toml\n")
    assert ran.returncode == 0, ran.stderr
    assert "samples/s" in ran.stdout


def test_examples_are_those_of_the_checkout_with_their_files(installed: Path, tmp_path: Path) -> None:
    program = (
        "import paceline; from paceline.spec.examples import examples; "
        "print(paceline.__file__); print(*sorted(f for e in examples().values() for f in (e.name, *e.files)))"
    )
    printed = subprocess.run(
        [str(installed.with_name("python")), "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    where, names = printed.splitlines()

    assert where.startswith(str(installed.parents[1]))
    assert {"null", "quickstart", "own-graph", "model.py", "own-script", "train.py"} <= set(names.split())
