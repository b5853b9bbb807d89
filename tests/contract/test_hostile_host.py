"""A host that lies: what it names decides neither where we write nor what we hand out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.errors import SiteError
from paceline.plan.trial import ClusterChoice
from paceline.sites.remote.launch import through_pipes
from paceline.sites.remote.requests import Agent
from paceline.sites.remote.site import RemoteSite

pytestmark = pytest.mark.processes
LIES = """
import hashlib, os
from paceline.sites import tether
from paceline.sites.remote.agent.serve import main
from paceline.sites.remote.agent.service import HostService

def listing(self, folder):
    return {{"digests": {{{named!r}: "other"}}}}

def get(self, path):
    return {{"size": 5, "follows": [b"owned"]}}

def missing(self, digests):
    return {{"paths": [{named!r}]}}

def put(self, path, mode):
    open({loot!r}, "wb").writelines(iter(self._channel.receive, b""))
    return {{}}

HostService.listing, HostService.get, HostService.missing, HostService.put = listing, get, missing, put
main(open(tether.__file__).read())
"""


class Hostile(RemoteSite):
    """One host whose agent is ours but for four answers."""

    name = "hostile"

    def __init__(self, named: str, loot: Path) -> None:
        super().__init__()
        self._program = LIES.format(named=named, loot=str(loot))

    def state(self) -> Any:
        raise NotImplementedError

    def launch(self, cluster: ClusterChoice) -> list[Agent]:
        del cluster
        return [through_pipes([sys.executable, "-c", self._program], "a hostile host")]

    def recall(self) -> None:
        pass


CLUSTER = ClusterChoice(
    site="hostile",
    hosts=1,
    workers_per_host=1,
    threads_per_worker=1,
    device="cpu",
    network=None,
    oversubscribe=True,
    options={"python": "python3", "interface": None},
)


@pytest.fixture
def opened() -> Iterator[Any]:
    sites: list[Hostile] = []

    def open_site(named: str, loot: Path) -> Hostile:
        sites.append(Hostile(named, loot))
        sites[-1].open(CLUSTER, ports=1)
        return sites[-1]

    yield open_site
    for site in sites:
        site.leave()


@pytest.mark.parametrize("kind", ["absolute", "above", "through a link"])
def test_a_file_outside_of_the_folder_of_the_run_is_never_written(opened: Any, tmp_path: Path, kind: str) -> None:
    folder, outside = tmp_path / "run", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    named = {"absolute": str(outside / "keys"), "above": "../outside/keys", "through a link": "link/keys"}[kind]
    site = opened(named, tmp_path / "loot")

    with pytest.raises(SiteError, match="outside of the folder of the run") as caught:
        site.fetch(folder)
    assert named in caught.value.message
    assert caught.value.hint
    assert not (outside / "keys").exists()


def test_what_a_host_names_inside_of_the_folder_is_brought(opened: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    opened("deeper/said", tmp_path / "loot").fetch(folder)

    assert (folder / "deeper" / "said").read_bytes() == b"owned"


def test_a_file_that_was_not_offered_is_never_handed_out(opened: Any, tmp_path: Path) -> None:
    offered, secret = tmp_path / "offered", tmp_path / "secret"
    offered.write_text("for all", encoding="ascii")
    secret.write_text("for nobody", encoding="ascii")
    site = opened(str(secret), tmp_path / "loot")

    with pytest.raises(SiteError, match="was not offered"):
        site.deliver([offered])
    assert not (tmp_path / "loot").exists()
