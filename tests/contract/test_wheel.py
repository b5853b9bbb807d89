"""Paceline as `pip install` leaves it: what the wheel holds, and that the examples run away from the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from paceline import __version__
from paceline.environments.interpreters import find_uv
from street import command_environment

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy, so that building writes nothing into the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    uv = find_uv()
    if uv is None:
        pytest.skip("no uv to build it with")
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
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """The program of a fresh virtual environment that has the wheel, and this environment's other packages."""
    uv = find_uv()
    environment = wheel.parent / "venv"
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


def test_it_is_typed_and_brings_worker_and_pins(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {"paceline/py.typed", "paceline_worker/__main__.py"} <= names
    assert "paceline/environments/pins/torch-cpu/requirements.lock" in names


def test_its_metadata_say_version_pythons_and_addresses(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(archive.read(name).decode())

    assert metadata["Version"] == __version__
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 14)} <= set(
        metadata.get_all("Classifier", [])
    )
    assert {line.split(",")[0] for line in metadata.get_all("Project-URL", [])} >= {"Homepage", "Source", "Issues"}
