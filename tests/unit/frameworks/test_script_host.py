"""A user's script, seen from the host: the variables of torchrun, and one pinned process a slot."""

from __future__ import annotations

from dataclasses import replace

from paceline.frameworks.script import SCRIPT
from paceline.plan.process import Host, Topology
from paceline.plan.trial import Trial
from records import make_trial

TOPOLOGY = Topology(
    hosts=tuple(
        Host(name=f"h{k}", address=f"10.0.0.{k}", cores=(0, 1), interface="eth0", ports=(4000 + k,)) for k in range(2)
    )
)


def trial(hosts: int = 1, workers_per_host: int = 1) -> Trial:
    one = make_trial()
    return replace(one, cluster=replace(one.cluster, hosts=hosts, workers_per_host=workers_per_host))


def test_ranks_on_two_hosts_are_told_who_they_are_and_where_to_meet() -> None:
    ranks = SCRIPT.processes(trial(hosts=2, workers_per_host=2), TOPOLOGY)
    told = [[rank.env[name] for name in ("RANK", "LOCAL_RANK", "GROUP_RANK")] for rank in ranks]

    assert told == [["0", "0", "0"], ["1", "1", "0"], ["2", "0", "1"], ["3", "1", "1"]]
    for rank in ranks:
        assert rank.env["WORLD_SIZE"] == "4"
        assert rank.env["LOCAL_WORLD_SIZE"] == "2"
        assert (rank.env["MASTER_ADDR"], rank.env["MASTER_PORT"]) == ("10.0.0.0", "4000")
        assert rank.env["GLOO_SOCKET_IFNAME"] == "eth0"
        assert rank.env["OMP_NUM_THREADS"] == "1"


def test_lone_rank_has_the_variables_too_as_torchrun_gives_them() -> None:
    (rank,) = SCRIPT.processes(trial(), TOPOLOGY)

    assert (rank.env["RANK"], rank.env["WORLD_SIZE"], rank.cores) == ("0", "1", (0,))


def test_plain_rank_is_told_nothing_of_ranks_and_has_none_beside_it() -> None:
    lone = trial()
    plain = replace(lone, workload=replace(lone.workload, options={"launch": "plain"}))
    (rank,) = SCRIPT.processes(plain, TOPOLOGY)
    several = replace(plain, cluster=replace(plain.cluster, workers_per_host=2))

    assert dict(rank.env) == {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    assert SCRIPT.capabilities.refuses(plain) is None
    assert "starts one worker" in (SCRIPT.capabilities.refuses(several) or "")
