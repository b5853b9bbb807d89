"""How many workers this machine can hold."""

from __future__ import annotations

import resource

import psutil
import pytest

from paceline.plan.trial import ClusterChoice
from paceline.sites import load_site
from paceline.sites.local import LEAST_WORKER_BYTES, most_workers


def test_memory_bounds_the_number_of_workers() -> None:
    assert 1 <= most_workers() <= psutil.virtual_memory().total // LEAST_WORKER_BYTES


def test_the_limit_of_the_user_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (7, 7))

    assert most_workers() == 7


@pytest.mark.parametrize("site", ["local", "lab"])
def test_a_million_workers_fit_on_no_site_of_this_machine(site: str) -> None:
    assert load_site(site).limits().workers_per_host < 10**6


def test_hosts_of_the_lab_share_what_the_machine_can_hold() -> None:
    limits = load_site("lab").limits()
    cluster = ClusterChoice(
        site="lab",
        hosts=2,
        workers_per_host=limits.workers_per_host,
        threads_per_worker=1,
        device="cpu",
        network=None,
        oversubscribe=True,
        options={name: knob.default for name, knob in limits.knobs.items()},
    )

    assert "that this machine holds" in (limits.refuses(cluster) or "")
