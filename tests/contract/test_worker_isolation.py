"""Point 9: the worker sees itself and its own environment, and speaks the version the host speaks."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.environments import Environment, HostInterpreter
from paceline.frameworks import known_frameworks, load_framework
from paceline.plan.job import JOB_VERSION
from paceline.prepared import environment_of
from paceline.run.outcome import EXIT_MEMORY
from paceline.run.runner import variables_of
from paceline.run.worker_source import worker_folder

WORKER = Path(__file__).parents[2] / "src" / "paceline_worker"
LOOK = """
import importlib.util, json, os, sys, sysconfig
ours = {name: importlib.util.find_spec(name) is not None for name in ("paceline", "paceline_worker", "pytest")}
standard = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
site = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
print(json.dumps({"path": sys.path, "ours": ours, "standard": standard, "site": site, "env": sorted(os.environ)}))
"""


def look_from_inside(environment: Environment, folder: Path) -> dict[str, object]:
    env = variables_of(environment, {}, folder / "job.json", folder / "cache")
    done = subprocess.run(
        environment.command(["-c", LOOK]), env=env, cwd=folder, capture_output=True, text=True, check=True
    )
    seen: dict[str, object] = json.loads(done.stdout)
    return seen


@pytest.mark.usefixtures("built_environments")
@pytest.mark.parametrize("name", sorted(known_frameworks()))
def test_path_of_a_rank_is_the_private_folder_and_its_environment(name: str, tmp_path: Path) -> None:
    environment = environment_of(load_framework(name))
    if environment.state().state != "ready":
        pytest.skip(f"{environment.name} is {environment.state().state}")
    seen = look_from_inside(environment, tmp_path)
    private = str(worker_folder(tmp_path / "cache"))
    # An editable install of the host puts its source on the path of the host's own interpreter, where null lives.
    own_source = str(WORKER.parent)
    in_host = environment.command([]) == [sys.executable]
    allowed = ("", private, *seen["standard"], *seen["site"])
    strangers = [
        path
        for path in seen["path"]
        if path not in allowed and not path.endswith((".zip", "/lib-dynload")) and not (path == own_source and in_host)
    ]

    assert strangers == []
    assert seen["ours"]["paceline_worker"]
    if not in_host:
        assert seen["ours"] == {"paceline": False, "paceline_worker": True, "pytest": False}


def test_variables_of_the_host_do_not_leak_into_a_rank(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("SECRET_TOKEN", "do not tell")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    seen = look_from_inside(HostInterpreter(), tmp_path)

    assert not {"OMP_NUM_THREADS", "SECRET_TOKEN"} & set(seen["env"])
    assert "/nowhere" not in seen["path"]


def test_private_folder_holds_the_worker_and_nothing_else(tmp_path: Path) -> None:
    folder = worker_folder(tmp_path)

    assert [path.name for path in folder.iterdir()] == ["paceline_worker"]
    assert worker_folder(tmp_path) == folder


def test_host_and_worker_agree_on_version_and_exit_codes() -> None:
    """Read from the source: the host never imports the worker."""
    constants = {
        node.targets[0].id: node.value.value
        for node in ast.parse((WORKER / "protocol.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    }

    assert constants["VERSION"] == JOB_VERSION
    assert constants["EXIT_MEMORY"] == EXIT_MEMORY


def test_worker_runs_alone_without_the_host(tmp_path: Path) -> None:
    folder = worker_folder(tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(folder)!r}); import paceline_worker.__main__",
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
