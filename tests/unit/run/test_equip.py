"""Environments on hosts that share no files with us: what is asked, what is built, what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from paceline.environments import Environment
from paceline.errors import SiteError
from paceline.run.equip import Equipment
from paceline.sites import HostAnswer, load_site
from paceline.sites.local import LocalSite


class Elsewhere(LocalSite):
    """A site whose hosts answer as they are told to, one answer list a question."""

    def __init__(self, *answers: list[HostAnswer]) -> None:
        super().__init__()
        self.answers, self.asked, self.delivered = list(answers), [], []  # type: ignore[var-annotated]

    def each_host(self, argv: Sequence[str], env: Mapping[str, str], *, within_s: float) -> list[HostAnswer]:
        del env, within_s
        self.asked.append(list(argv))
        return self.answers.pop(0)

    def deliver(self, paths: Sequence[Path]) -> None:
        self.delivered += paths


class Pinned(Environment):
    name, lock = "torch-cpu", "1"

    def fingerprint(self) -> dict[str, Any]:
        return {"packages": {"torch": "2.0", "numpy": "1.0"}}

    def command(self, argv: Sequence[str]) -> list[str]:
        return ["/env/bin/python", *argv]

    def variables(self) -> dict[str, str]:
        return {}

    state = create = verify = remove = None  # type: ignore[assignment]


def has(host: str, **packages: str) -> HostAnswer:
    return HostAnswer(host=host, code=0, text=json.dumps(packages))


RIGHT = {"torch": "2.0", "numpy": "1.0", "pip": "9"}
GONE = HostAnswer(host="b", code=127, text="No such file or directory: /env/bin/python")
BUILT = [HostAnswer(host="a", code=0, text="ready"), HostAnswer(host="b", code=0, text="ready")]


def test_hosts_that_share_our_files_are_not_asked() -> None:
    Equipment(load_site("local")).ensure(Pinned())


def test_same_packages_everywhere_are_asked_for_once() -> None:
    site = Elsewhere([has("a", **RIGHT), has("b", **RIGHT)])
    equipment = Equipment(site)
    equipment.ensure(Pinned())
    equipment.ensure(Pinned())

    assert len(site.asked) == 1
    assert not site.delivered


def test_missing_environment_is_built_from_our_pins_and_asked_for_again() -> None:
    site = Elsewhere([has("a", **RIGHT), GONE], BUILT, [has("a", **RIGHT), has("b", **RIGHT)])
    Equipment(site).ensure(Pinned())

    assert site.asked[1][-1].endswith("paceline.environments torch-cpu")
    assert any(path.name == "torch-cpu" for path in site.delivered)


def test_what_is_still_different_is_refused_with_what_to_type_there() -> None:
    other = has("b", torch="1.9", numpy="1.0")
    with pytest.raises(SiteError, match=r"on b: torch is 1\.9, and 2\.0 here") as caught:
        Equipment(Elsewhere([has("a", **RIGHT), other], BUILT, [has("a", **RIGHT), other])).ensure(Pinned())
    assert caught.value.hint == "on b: paceline env build torch-cpu"


def test_build_that_fails_is_told_with_its_last_words() -> None:
    failed = [HostAnswer(host="b", code=1, text="building\nno index can be reached")]
    with pytest.raises(SiteError, match="cannot be built on b: no index can be reached"):
        Equipment(Elsewhere([GONE], failed)).ensure(Pinned())


def test_interpreter_without_pins_is_refused_with_what_to_do() -> None:
    own = Pinned()
    own.name = "/home/me/venv/bin/python"
    with pytest.raises(SiteError, match="nothing says how to build it") as caught:
        Equipment(Elsewhere([GONE])).ensure(own)
    assert "every host" in (caught.value.hint or "")
