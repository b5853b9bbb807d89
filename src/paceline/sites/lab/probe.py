"""Measure the links of a lab: `python -I -S probe.py WARM_S WINDOW_S INIT ADDRESS [INIT ADDRESS]…`.

This is a program of its own, because it enters one network namespace after the other. Each host sends to the next one
around the ring, so every link is measured in both directions. It prints a JSON list with a `Probed` of each host.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import statistics
import sys
import time
from typing import TypedDict

CLONE_NEWNET = 0x40000000
PORT = 19999
CHUNK = 256 * 1024
PATIENCE_S = 20.0
MOST_PINGS = 40
PINGING_S = 0.06


class Probed(TypedDict):
    """What was measured from one host to the next."""

    bytes_per_s: float
    """Rate at which bytes arrived."""
    round_trip_s: float


def enter(init: str) -> None:
    with open(f"/proc/{init}/ns/net") as file:  # noqa: PTH123
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def connected(sender: tuple[str, str], receiver: tuple[str, str]) -> tuple[socket.socket, socket.socket]:
    """The two ends of one connection; a socket stays in the namespace in which it was made."""
    enter(receiver[0])
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((receiver[1], PORT))
        listening.listen()
        listening.settimeout(PATIENCE_S)
        enter(sender[0])
        out = socket.create_connection((receiver[1], PORT), timeout=PATIENCE_S)
        into, _ = listening.accept()
    into.settimeout(PATIENCE_S)
    for end in (out, into):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return out, into


def round_trip_s(out: socket.socket, into: socket.socket) -> float:
    child = os.fork()
    if child == 0:
        while byte := into.recv(1):
            into.sendall(byte)
            if byte == b"e":
                os._exit(0)
        os._exit(1)
    times: list[float] = []
    while len(times) < 6 or (len(times) < MOST_PINGS and sum(times) < PINGING_S):
        start = time.perf_counter()
        out.sendall(b"p")
        out.recv(1)
        times.append(time.perf_counter() - start)
    out.sendall(b"e")
    out.recv(1)
    os.waitpid(child, 0)
    # The first one also resolves addresses, so it does not count. Of the others the lower quartile does: on a busy
    # machine these processes wait for a core, which says nothing about the link.
    return statistics.quantiles(times[1:], n=4)[0]


def bytes_per_s(out: socket.socket, into: socket.socket, warm_s: float, window_s: float) -> float:
    """The rate at which bytes arrive after a warm-up, when slow start is over and the burst of the bucket is spent."""
    child = os.fork()
    if child == 0:
        into.close()
        end, chunk = time.monotonic() + warm_s + window_s + PATIENCE_S, bytes(CHUNK)
        try:
            while time.monotonic() < end:
                out.sendall(chunk)
        finally:
            os._exit(0)
    out.close()
    buffer = memoryview(bytearray(CHUNK))
    into.recv_into(buffer)
    begin = time.monotonic()
    while time.monotonic() < begin + warm_s:
        into.recv_into(buffer)
    begin, received = time.monotonic(), 0
    while (now := time.monotonic()) < begin + window_s:
        received += into.recv_into(buffer)
    into.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    into.close()  # resets the connection, which ends the sender
    os.waitpid(child, 0)
    return received / (now - begin)


def main(warm_s: str, window_s: str, *inits_and_addresses: str) -> None:
    hosts = list(zip(inits_and_addresses[::2], inits_and_addresses[1::2]))  # noqa: B905  they come in pairs
    # The links are to be measured, and not how long this process waits for a core.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    probed: list[Probed] = []
    for number, sender in enumerate(hosts):
        out, into = connected(sender, hosts[(number + 1) % len(hosts)])
        trip = round_trip_s(out, into)
        rate = bytes_per_s(out, into, float(warm_s), float(window_s))
        probed.append({"bytes_per_s": rate, "round_trip_s": trip})
    print(json.dumps(probed))


if __name__ == "__main__":
    main(*sys.argv[1:])
