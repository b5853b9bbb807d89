"""The rig, in the JAX environment, where it is built: `paceline env build jax-cpu`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jax_rig import JaxRig
from paceline.environments import load_environment

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src" / "paceline_worker"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.frameworks)


def make_rig(name: str, folder: Path, threads: dict[str, str]) -> JaxRig:
    """A rig in an environment that is there; skips the test where it is not."""
    environment = load_environment(name)
    state = environment.state()
    if state.state != "ready":
        pytest.skip(f"environment {name} is {state.state}: {state.reason}; {state.fix}")
    # As a run does: the interpreter sees the worker and nothing else of ours.
    (folder / "path").mkdir()
    (folder / "path" / "paceline_worker").symlink_to(SOURCE)
    env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    env |= environment.variables() | threads | {"PYTHONPATH": str(folder / "path")}
    # JAX says by such a warning that memory which was given away could not be used.
    return JaxRig(command=environment.command(["-W", "error::UserWarning"]), env=env, folder=folder)


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> JaxRig:
    return make_rig("jax-cpu", tmp_path_factory.mktemp("jax"), {"NPROC": "1", "JAX_PLATFORMS": "cpu"})
