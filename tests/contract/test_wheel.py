"""What `pip install` gives: the wheel of the host, built here, looked into."""

from __future__ import annotations

import subprocess
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from paceline import __version__
from paceline.environments.interpreters import find_uv

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    uv = find_uv()
    if uv is None:
        pytest.skip("no uv to build it with")
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [str(uv), "build", "--wheel", "--out-dir", str(folder), str(ROOT)], capture_output=True, text=True, check=False
    )
    if built.returncode and "hatchling" in built.stderr:
        pytest.skip(f"hatchling cannot be had: {built.stderr[-300:]}")
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


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
