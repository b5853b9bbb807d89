"""What frameworks say of their collectives: known operations, a worker module for them, and no kind without the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.frameworks import FRAMEWORKS, load_framework
from paceline.workloads.collective import BUS_FACTORS

SOURCE = Path(__file__).parents[3] / "src"


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_operations_are_known_and_have_a_worker_module(name: str) -> None:
    framework = load_framework(name)
    offered = framework.capabilities.collectives
    module = SOURCE / (framework.module_for("collective").replace(".", "/") + ".py")

    assert set(offered) <= set(BUS_FACTORS)
    assert bool(offered) == ("collective" in framework.capabilities.workloads) == module.exists()
    assert framework.module_for("graph") == framework.module
