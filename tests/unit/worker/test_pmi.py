"""The start-up protocol of MPICH, as one of its ranks speaks it."""

from __future__ import annotations

import socket

from paceline.sites.remote.agent.ports import free_ports
from paceline_worker.pmi import Server


def serve() -> tuple[str, int]:
    """A server for a job of one rank; its address."""
    address = "127.0.0.1", free_ports(1, "127.0.0.1")[0]
    Server(address, 1, 1).start()
    return address


def answer(address: tuple[str, int], line: str) -> str:
    with socket.create_connection(address) as rank, rank.makefile("r", encoding="ascii") as answers:
        rank.sendall(f"{line}\n".encode("ascii"))
        return answers.readline().strip()


def test_what_a_rank_keeps_another_one_gets() -> None:
    address = serve()
    answer(address, "cmd=put kvsname=any key=card value=10.0.0.1#80")

    assert answer(address, "cmd=get kvsname=any key=card") == "cmd=get_result rc=0 msg=success value=10.0.0.1#80"
    assert "key_not_found" in answer(address, "cmd=get kvsname=any key=other")


def test_jobs_have_names_of_their_own_because_mpich_names_shared_memory_after_them() -> None:
    names = [answer(serve(), "cmd=get_my_kvsname") for _ in range(2)]

    assert len(set(names)) == 2
    assert all(name.startswith("cmd=my_kvsname kvsname=paceline-") for name in names)
