"""The rig, in the MXNet environment, where it is built: `paceline env build mxnet-cpu`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mxnet_rig import MxnetRig
from paceline.environments import load_environment
from torch_rig import Rig

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src" / "paceline_worker"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.frameworks)


def make_rig(kind: type[Rig], name: str, folder: Path) -> Rig:
    """A rig in an environment that is there; skips the test where it is not."""
    environment = load_environment(name)
    state = environment.state()
    if state.state != "ready":
        pytest.skip(f"environment {name} is {state.state}: {state.reason}; {state.fix}")
    # As a run does: the interpreter sees the worker and nothing else of ours.
    (folder / "path").mkdir()
    (folder / "path" / "paceline_worker").symlink_to(SOURCE)
    env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    env |= environment.variables() | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(folder / "path")}
    return kind(command=environment.command([]), env=env, folder=folder)


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return make_rig(MxnetRig, "mxnet-cpu", tmp_path_factory.mktemp("mxnet"))


@pytest.fixture(scope="session")
def torch_rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return make_rig(Rig, "torch-cpu", tmp_path_factory.mktemp("torch"))
