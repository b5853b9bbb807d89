"""The rigs, in the environments of Keras, where they are built: `paceline env build keras-jax-cpu` …"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from keras_rig import KerasRig
from paceline.environments import load_environment

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src" / "paceline_worker"
THREADS = {"OMP_NUM_THREADS": "1", "NPROC": "1", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.frameworks)


@pytest.fixture(scope="session")
def rig_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], KerasRig]:
    """Backend → a rig in its environment; skips the test where that is not built."""

    def rig(backend: str) -> KerasRig:
        environment = load_environment(f"keras-{backend}-cpu")
        state = environment.state()
        if state.state != "ready":
            pytest.skip(f"environment {environment.name} is {state.state}: {state.reason}; {state.fix}")
        # As a run does: the interpreter sees the worker and nothing else of ours.
        folder = tmp_path_factory.mktemp(backend)
        (folder / "path").mkdir()
        (folder / "path" / "paceline_worker").symlink_to(SOURCE)
        env = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        env |= environment.variables() | THREADS | {"PYTHONPATH": str(folder / "path"), "KERAS_BACKEND": backend}
        return KerasRig(command=environment.command([]), env=env, folder=folder, backend=backend)

    return rig
