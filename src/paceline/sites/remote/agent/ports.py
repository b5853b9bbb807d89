"""Ports for a run that no other program is likely to take before they are bound."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import socket
import stat
import tempfile
from typing import TextIO

from paceline.sites.remote.agent.kernel_files import words

FIRST_PORT = 20000
"""The lowest port that a run is given: above those of well-known services, below those that Linux gives to clients."""
LAST_PORT = (1 << 16) - 1
FEW_PORTS = 1000
"""A range that is smaller than this would soon be used up."""
IANA_CLIENT_PORTS = ("49152", "65535")
"""What a kernel gives to clients, where it does not tell: the range that IANA sets aside for that."""


def free_ports(count: int, address: str) -> list[int]:
    """Ports of an address that are free now.

    None of them is one that the kernel gives to whoever connects somewhere. Each has its turn, so that runs which start
    together get different ones. A program that has a port of its own can still come first: who asks has to try again.
    """
    choice = _ports_to_choose()
    ports: list[int] = []
    with _own_file(os.path.join(tempfile.gettempdir(), f"paceline-ports.{os.getuid()}")) as turns:
        fcntl.flock(turns, fcntl.LOCK_EX)
        turn = int(turns.read() or random.randrange(len(choice)))  # noqa: S311  other users start elsewhere
        while len(ports) < count:
            port = choice[turn % len(choice)]
            if _is_free(address, port):
                ports.append(port)
            turn += 1
        turns.seek(0)
        turns.truncate()
        turns.write(str(turn))
    return ports


def _ports_to_choose() -> range:
    """The larger range of ports beside those that the kernel gives to clients.

    On a host whose kernel gives out nearly all ports there is no such range: then any port may be chosen.
    """
    low, high = map(int, words("/proc/sys/net/ipv4/ip_local_port_range") or IANA_CLIENT_PORTS)
    larger = max(range(FIRST_PORT, low), range(high + 1, LAST_PORT + 1), key=len)
    return larger if len(larger) >= FEW_PORTS else range(FIRST_PORT, LAST_PORT + 1)


def _own_file(path: str) -> TextIO:
    """Open a file of ours in a folder where others may write. What they put in its place is not followed or changed."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EACCES, errno.EISDIR):
            raise
        raise _not_ours(path) from None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and status.st_nlink == 1:
        return os.fdopen(descriptor, "r+")
    os.close(descriptor)
    raise _not_ours(path)


def _not_ours(path: str) -> OSError:
    return OSError(f"{path} is not a regular file of ours: remove it, or set TMPDIR to a folder of your own")


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True
