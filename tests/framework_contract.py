"""What the contract suite (`contract/frameworks`) is told of each framework: its name, and where it falls short and why.

All else, strategies, layers, phases, comes from the framework's own capabilities. A gap is expected to fail, strictly:
one that has closed fails the suite until it is struck out.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

FOLDER = Path(__file__).parent / "contract" / "frameworks" / "configurations"


@dataclass(frozen=True)
class Gap:
    """A check that a framework does not pass."""

    kind: Literal["notimpl", "notyet", "never"]
    """The framework can and we do not; it will be able to; it cannot by its nature."""
    check: str
    """Name of the check, with its case after a colon where only that fails: "agrees:lstm"; "*": all of them."""
    reason: str


@dataclass(frozen=True)
class Configuration:
    """One framework under the contract."""

    framework: str
    gaps: tuple[Gap, ...] = ()

    def gap(self, check: str, case: str = "") -> Gap | None:
        names = {"*", check, f"{check}:{case}"}
        return next((gap for gap in self.gaps if gap.check in names), None)

    def param(self, check: str, case: str = "", *, quick: tuple[str, ...]) -> object:
        """A case for `parametrize`: this framework, with its marks."""
        marks = [] if self.framework in quick else [pytest.mark.frameworks]
        marks.append(pytest.mark.xdist_group(case or self.framework))
        if gap := self.gap(check, case):
            marks.append(pytest.mark.xfail(reason=f"{gap.kind}: {gap.reason}", strict=True, run=gap.kind != "never"))
        values = (self.framework, case) if case else (self.framework,)
        return pytest.param(*values, marks=marks, id="-".join(values))


def configurations() -> list[Configuration]:
    """All of them, by name."""
    return [_load(path) for path in sorted(FOLDER.glob("*.py"))]


def _load(path: Path) -> Configuration:
    spec = importlib.util.spec_from_file_location(f"configuration_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    configuration: Configuration = module.CONFIGURATION
    return configuration
