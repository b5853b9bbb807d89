"""Ports for a run: apart from those that other programs get by chance, and from those of runs that start with it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from paceline.sites.remote.agent import ports as agent_ports
from paceline.sites.remote.agent.ports import free_ports

HERE = "127.0.0.1"


def given_out_by_the_kernel(monkeypatch: pytest.MonkeyPatch, low: int, high: int) -> None:
    words = agent_ports.words
    monkeypatch.setattr(
        agent_ports, "words", lambda path: [str(low), str(high)] if path.endswith("port_range") else words(path)
    )


def test_all_are_different() -> None:
    assert len(set(free_ports(8, HERE))) == 8


def test_nobody_who_connects_can_get_one_by_chance() -> None:
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())

    assert not [port for port in free_ports(20, HERE) if low <= port <= high]


def test_processes_that_ask_together_get_different_ones(tmp_path: Path) -> None:
    ask = f"from paceline.sites.remote.agent.ports import free_ports\nprint(*(free_ports(2, '{HERE}')[1] for _ in range(50)))"
    asking = [
        subprocess.Popen([sys.executable, "-c", ask], env={"TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    ports = [int(port) for process in asking for port in re.findall(r"\d+", process.communicate(timeout=60)[0])]

    assert len(ports) == len(set(ports)) == 150


def test_a_port_in_use_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1, HERE)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with socket.socket() as taken:
        taken.bind((HERE, port))
        (tmp_path / f"paceline-ports.{os.getuid()}").write_text(str(port - agent_ports._ports_to_choose()[0]))

        assert free_ports(1, HERE) != [port]


@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [(32768, 60999, 20000, 32768), (15000, 40000, 40001, 65536), (1024, 65535, 20000, 65536)],
    ids=["Linux's own choice", "the wider side is above", "all ports, as some clusters have it"],
)
def test_whatever_the_kernel_gives_out_there_are_ports(
    monkeypatch: pytest.MonkeyPatch, low: int, high: int, first: int, last: int
) -> None:
    given_out_by_the_kernel(monkeypatch, low, high)

    assert all(first <= port < last for port in free_ports(5, HERE))


def test_after_the_last_port_the_first_has_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    given_out_by_the_kernel(monkeypatch, 21050, 65535)

    ports = [free_ports(100, HERE) for _ in range(11)]

    assert {port for some in ports for port in some} <= set(range(20000, 21050))
    assert len({port for some in ports[:10] for port in some}) == 1000


def test_an_address_of_another_host_is_refused() -> None:
    with pytest.raises(OSError, match="assign"):
        free_ports(1, "192.0.2.1")


def test_a_link_in_the_place_of_our_turns_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    precious = tmp_path / "precious"
    precious.write_text("7", encoding="ascii")
    (tmp_path / f"paceline-ports.{os.getuid()}").symlink_to(precious)

    with pytest.raises(OSError, match="remove it, or set TMPDIR"):
        free_ports(1, HERE)
    assert precious.read_text(encoding="ascii") == "7"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_file_that_another_user_made_is_not_taken_for_our_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = tmp_path / f"paceline-ports.{os.getuid()}"
    planted.write_text("7", encoding="ascii")
    os.chown(planted, 12345, 12345)

    with pytest.raises(OSError, match="remove it, or set TMPDIR"):
        free_ports(1, HERE)
    assert planted.read_text(encoding="ascii") == "7"
