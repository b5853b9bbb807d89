"""How agents come to their hosts: the command that is one, and the two ways to talk with it."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import socket
import struct
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from multiprocessing import ProcessError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

import psutil

from paceline.errors import SiteError
from paceline.sites import tether
from paceline.sites.remote import agent
from paceline.sites.remote.link import Agent

HOME, KEY = "PACELINE_HOME", "PACELINE_KEY"
"""Variables in which agents that call home find where that is, and what makes them ours."""
LOOK_AGAIN_S = 0.2
PATIENCE_S = 5


def agent_command(python: str) -> list[str]:
    """A command line that is an agent wherever this Python is."""
    sources = {name: Path(module.__file__).read_text(encoding="utf-8") for name, module in _CARRIED.items()}
    packed = base64.b64encode(zlib.compress(json.dumps(sources).encode(), 9)).decode()
    unpack = (
        "import base64,json,zlib;"
        f"s=json.loads(zlib.decompress(base64.b64decode('{packed}')));"
        "m={'__name__':'agent'};exec(s['agent'],m);m['main'](s['tether'])"
    )
    return [python, "-u", "-I", "-S", "-c", unpack]


_CARRIED: dict[str, Any] = {"agent": agent, "tether": tether}


def through_pipes(command: Sequence[str], what: str) -> Agent:
    """An agent at the other end of a command that carries stdin and stdout there (ssh, kubectl exec).

    Raises:
        SiteError: the command ended before the agent spoke; with what it said.
    """
    popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert popen.stdin
    assert popen.stdout
    assert popen.stderr
    said: list[bytes] = []
    reading = threading.Thread(target=_keep_last, args=(popen.stderr, said), daemon=True)
    reading.start()
    send = Connection(os.dup(popen.stdin.fileno()), readable=False)
    receive = Connection(os.dup(popen.stdout.fileno()), writable=False)
    popen.stdin.close()
    popen.stdout.close()

    def close() -> None:
        send.close()
        try:
            popen.wait(agent.GRACE_S + agent.REAP_S)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()

    try:
        return Agent(receive.recv_bytes, send.send_bytes, close)
    except SiteError as error:
        popen.kill()
        popen.wait()
        reading.join(1.0)
        told = b"".join(said).decode(errors="replace").strip().splitlines()
        raise SiteError(f"{what}: {told[-1] if told else error.message}") from None


def _keep_last(stream: Any, said: list[bytes]) -> None:
    with stream:
        for line in stream:
            said.append(line)
            del said[:-20]


class Home:
    """Where agents call that an engine started: only those that know the key are let in."""

    def __init__(self, port: int = 0) -> None:
        self._key = secrets.token_hex(16)
        self._listening = socket.create_server(("", port), backlog=128)
        self._listening.settimeout(LOOK_AGAIN_S)

    def variables(self) -> dict[str, str]:
        """What an agent must find in its environment."""
        port = self._listening.getsockname()[1]
        return {HOME: ",".join(f"{address}:{port}" for address in own_addresses()), KEY: self._key}

    def welcome(self, count: int, *, within_s: float, dead: Callable[[], str | None]) -> list[Agent]:
        """Wait for so many agents.

        Args:
            within_s: how long.
            dead: why no more will come, or None.

        Raises:
            SiteError: fewer came.
        """
        deadline = time.monotonic() + within_s
        agents: list[Agent] = []
        while len(agents) < count:
            try:
                taken, _ = self._listening.accept()
            except TimeoutError:
                why = dead() or (f"not all hosts called within {within_s:g} s" if time.monotonic() > deadline else None)
                if why:
                    for one in agents:
                        one.close()
                    raise SiteError(f"{len(agents)} of {count} hosts are there: {why}") from None
                continue
            if made := self._let_in(taken):
                agents.append(made)
        # Whoever calls first: a rank must have the same host in every run.
        return sorted(agents, key=lambda one: natural_order(one.about["name"]))

    def _let_in(self, taken: socket.socket) -> Agent | None:
        taken.settimeout(None)
        # A stranger who says nothing must not keep the others waiting.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", PATIENCE_S, 0))
        connection = Connection(os.dup(taken.fileno()))
        try:
            deliver_challenge(connection, self._key.encode())
            answer_challenge(connection, self._key.encode())
        except (OSError, EOFError, AssertionError, ProcessError):
            connection.close()
            taken.close()
            return None
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))

        def close() -> None:
            # A thread of ours is reading: it hears the end.
            taken.shutdown(socket.SHUT_RDWR)
            taken.close()

        return Agent(connection.recv_bytes, connection.send_bytes, close)

    def close(self) -> None:
        self._listening.close()


def natural_order(name: str) -> list[tuple[str, int]]:
    """A key that puts node2 before node10."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", name)]


def own_addresses() -> list[str]:
    """Addresses by which hosts may reach us, loopback last: an agent beside us should be known by the others' name."""
    found = [
        one.address
        for device in psutil.net_if_addrs().values()
        for one in device
        if one.family == socket.AF_INET and not one.address.startswith("127.")
    ]
    return [*found, "127.0.0.1"]


def program_version(command: Sequence[str]) -> str:
    """The first line that a program says of itself; empty where it cannot be asked or does not work."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    said = (done.stdout or done.stderr).strip() if done.returncode == 0 else ""
    return next(iter(said.splitlines()), "")
