"""The rig, in the PyTorch environment, which is built on demand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paceline.environments import load_environment
from torch_rig import Rig

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src" / "paceline_worker"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.torch)


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    environment = load_environment("torch-cpu")
    state = environment.state()
    if state.state == "unavailable":
        pytest.skip(f"no PyTorch environment: {state.reason}; {state.fix}")
    environment.create(lambda _line: None)
    folder = tmp_path_factory.mktemp("torch")
    # As a run does: the interpreter sees the worker and nothing else of ours.
    (folder / "path").mkdir()
    (folder / "path" / "paceline_worker").symlink_to(SOURCE)
    env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    env |= environment.variables()
    env |= {"PYTHONPATH": str(folder / "path"), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    return Rig(command=environment.command(["-W", "error::UserWarning"]), env=env, folder=folder)
