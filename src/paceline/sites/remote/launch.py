"""How agents get to their hosts: the command that starts one, and the two ways to connect with it."""

from __future__ import annotations

import base64
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
from typing import IO

import psutil

from paceline.errors import SiteError
from paceline.sites import tether
from paceline.sites.remote import agent
from paceline.sites.remote.agent import serve
from paceline.sites.remote.agent.channel import HOME, KEY
from paceline.sites.remote.agent.processes import GRACE_S, REAP_S
from paceline.sites.remote.requests import Agent

LOOK_AGAIN_S = 0.2
"""How often to look whether the agents that are waited for can still come."""
PATIENCE_S = 5
"""Time for a caller to prove that it knows the key."""
STDERR_LINES = 20
PROGRAM = """\
import sys, types
for name, source in {modules!r}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), vars(module))
sys.modules[{main!r}].main({tether!r})
"""
"""Loads each module from its source under its full name, where the imports of those after it find it; then starts."""


def agent_command(python: str) -> list[str]:
    """The command line that starts an agent wherever this Python is.

    It is compressed: the kernel takes no argument above 128 KiB, and each engine copies it to every host. And it is one
    line: between ssh and the agent there may be any shell.
    """
    packed = base64.b64encode(zlib.compress(agent_program().encode(), 9)).decode()
    return [python, "-u", "-I", "-S", "-c", f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{packed}')))"]


def agent_program() -> str:
    """The modules of the agent as one program that needs no files and nothing but the standard library."""
    folder = Path(agent.__file__).parent
    modules = {
        f"{agent.__name__}.{name}": (folder / f"{name}.py").read_text(encoding="utf-8") for name in agent.MODULES
    }
    return PROGRAM.format(
        modules=modules, main=serve.__name__, tether=Path(tether.__file__).read_text(encoding="utf-8")
    )


def through_pipes(command: Sequence[str], what: str) -> Agent:
    """An agent at the other end of a command that carries its standard input and output (ssh, kubectl exec).

    Raises:
        SiteError: the command ended before the agent answered; with the last line that it wrote.
    """
    popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert popen.stdin
    assert popen.stdout
    assert popen.stderr
    stderr_lines: list[bytes] = []
    reading = threading.Thread(target=_keep_last, args=(popen.stderr, stderr_lines), daemon=True)
    reading.start()
    send = Connection(os.dup(popen.stdin.fileno()), readable=False)
    receive = Connection(os.dup(popen.stdout.fileno()), writable=False)
    popen.stdin.close()
    popen.stdout.close()

    def close() -> None:
        send.close()
        try:
            popen.wait(GRACE_S + REAP_S)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()

    try:
        return Agent(receive.recv_bytes, send.send_bytes, close)
    except SiteError as error:
        popen.kill()
        popen.wait()
        reading.join(1.0)
        lines = b"".join(stderr_lines).decode(errors="replace").strip().splitlines()
        raise SiteError(f"{what}: {lines[-1] if lines else error.message}") from None


def _keep_last(stream: IO[bytes], lines: list[bytes]) -> None:
    """Read a stream to its end, so that its writer never waits, and keep its last lines."""
    with stream:
        for line in stream:
            lines.append(line)
            del lines[:-STDERR_LINES]


class Home:
    """Where agents call that a program of the engine started: only those that know the key are let in."""

    def __init__(self, port: int = 0) -> None:
        self._key = secrets.token_hex(16)
        self._listening = socket.create_server(("", port), backlog=128)
        self._listening.settimeout(LOOK_AGAIN_S)

    def variables(self) -> dict[str, str]:
        """What an agent has to find in its environment."""
        port = self._listening.getsockname()[1]
        return {HOME: ",".join(f"{address}:{port}" for address in own_addresses()), KEY: self._key}

    def welcome(self, count: int, *, within_s: float, dead: Callable[[], str | None]) -> list[Agent]:
        """Wait for so many agents.

        Args:
            count: how many.
            within_s: how long to wait.
            dead: tells why no more agents will come, or None.

        Raises:
            SiteError: fewer agents came.
        """
        deadline = time.monotonic() + within_s
        agents: list[Agent] = []
        while len(agents) < count:
            try:
                taken, _ = self._listening.accept()
            except TimeoutError:
                why = dead() or (f"not all hosts called within {within_s:g} s" if time.monotonic() > deadline else None)
                if why:
                    for caller in agents:
                        caller.close()
                    raise SiteError(f"{len(agents)} of {count} hosts are there: {why}") from None
                continue
            if admitted := self._let_in(taken):
                agents.append(admitted)
        # In the order of their names and not of their calls: a rank must have the same host in every run.
        return sorted(agents, key=lambda caller: natural_order(caller.about.name))

    def _let_in(self, taken: socket.socket) -> Agent | None:
        taken.settimeout(None)
        # A stranger who sends nothing must not keep the others waiting.
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
            # A thread of ours is reading from it, and hears its end.
            taken.shutdown(socket.SHUT_RDWR)
            taken.close()

        return Agent(connection.recv_bytes, connection.send_bytes, close)

    def close(self) -> None:
        self._listening.close()


def natural_order(name: str) -> list[tuple[str, int]]:
    """A key that puts node2 before node10."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", name)]


def own_addresses() -> list[str]:
    """Addresses by which hosts may reach us.

    Loopback is last: an agent on this machine should be known by an address that the others can reach too.
    """
    addresses = [
        entry.address
        for device in psutil.net_if_addrs().values()
        for entry in device
        if entry.family == socket.AF_INET and not entry.address.startswith("127.")
    ]
    return [*addresses, "127.0.0.1"]


def program_version(command: Sequence[str]) -> str:
    """The first line that a program prints about its version; empty where it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    text = (done.stdout or done.stderr).strip() if done.returncode == 0 else ""
    return next(iter(text.splitlines()), "")
