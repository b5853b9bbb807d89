"""The connection to the machine that measures: frames of bytes, through pipes or over the network."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from multiprocessing import ProcessError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

HOME, KEY = "PACELINE_HOME", "PACELINE_KEY"
"""Variables in which an agent that calls home finds the addresses to call, and the key that lets it in."""
CONNECT_S = 5.0


class Channel:
    """Frames in both directions. Threads may send at the same time: a message and what follows it stay together."""

    def __init__(
        self, receive: Callable[[], bytes], send: Callable[[bytes], None], own_address: str | None = None
    ) -> None:
        """Args: receive, send: one frame; receive raises EOFError or OSError when the connection has ended.
        own_address: where this host was reached; None through pipes.
        """
        self.receive = receive
        self.own_address = own_address
        self._send = send
        self._sending = threading.Lock()

    def send(self, message: Mapping[str, object], follows: Iterable[bytes] | None = None) -> None:
        """Send a message; where frames follow it, these and then an empty frame."""
        with self._sending:
            self._send(json.dumps(message).encode())
            if follows is not None:
                for frame in follows:
                    self._send(frame)
                self._send(b"")


def open_channel() -> Channel:
    """Call home where the environment says how, else use standard input and output."""
    home, key = (os.environ.pop(name, "") for name in (HOME, KEY))
    return _call(home.split(","), key.encode()) if home else _through_pipes()


def _call(addresses: Sequence[str], key: bytes) -> Channel:
    """Connect to the first of these addresses that answers and knows the key; end this program if none does."""
    failures = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            calling = socket.create_connection((host, int(port)), timeout=CONNECT_S)
            calling.settimeout(None)
            own_address = calling.getsockname()[0]
            connection = Connection(calling.detach())
            answer_challenge(connection, key)
            deliver_challenge(connection, key)
        except (OSError, EOFError, AssertionError, ProcessError) as error:
            failures.append(f"{address}: {error}")
        else:
            return Channel(connection.recv_bytes, connection.send_bytes, own_address)
    sys.exit("{} cannot call home: {}".format(socket.gethostname(), "; ".join(failures)))


def _through_pipes() -> Channel:
    """Keep the pipes that ssh offers for frames: whatever else is printed must not get between them."""
    into, out = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return Channel(Connection(into, writable=False).recv_bytes, Connection(out, readable=False).send_bytes)
