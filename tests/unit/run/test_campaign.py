from __future__ import annotations

from collections.abc import Sequence

import pytest

from paceline.plan import Proposal
from paceline.record import Record
from paceline.run import Budget, campaign
from paceline.spec import read_study
from records import make_record

STUDY = read_study(
    {
        "study": {"name": "s"},
        "workload": {"model": "mlp", "batch_per_worker": 8},
        "framework": {"name": "null"},
    }
)
PROPOSAL = Proposal(study=STUDY, reason="more")


def test_campaign_runs_until_nothing_is_proposed() -> None:
    def propose(records: Sequence[Record]) -> Proposal | None:
        return PROPOSAL if len(records) < 3 else None

    records = campaign(propose, lambda _: [make_record()], records=[make_record()])

    assert len(records) == 3


def test_campaign_stops_when_nothing_new_comes_back() -> None:
    assert campaign(lambda _: PROPOSAL, lambda _: []) == []


@pytest.mark.parametrize(("budget", "expected"), [(Budget(rounds=4), 4), (Budget(seconds=0.0), 0)])
def test_campaign_keeps_to_its_budget(budget: Budget, expected: int) -> None:
    records = campaign(lambda _: PROPOSAL, lambda _: [make_record()], budget=budget)

    assert len(records) == expected
