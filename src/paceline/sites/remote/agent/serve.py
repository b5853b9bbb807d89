"""The main loop of an agent: answer requests until the connection ends, then end everything that was started."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time

from paceline.sites.remote.agent.channel import Channel, open_channel
from paceline.sites.remote.agent.service import HostService

SILENCE_S = 120.0
"""An agent that was asked nothing for so long takes the machine that measures for dead."""


class _Server:
    def __init__(self, channel: Channel, service: HostService) -> None:
        self._channel = channel
        self._service = service
        self._heard_at = time.monotonic()

    def serve(self) -> None:
        threading.Thread(target=self._end_in_silence, daemon=True).start()
        with contextlib.suppress(EOFError, OSError):
            while True:
                self._answer(self._channel.receive())
        self._service.stop()

    def _answer(self, frame: bytes) -> None:
        self._heard_at = time.monotonic()
        request = json.loads(frame.decode())
        number = request.pop("number")
        try:
            answer = getattr(self._service, request.pop("do"))(**request)
        except Exception as error:  # noqa: BLE001  told to whoever asked
            answer = {"error": f"{type(error).__name__}: {error}"}
        follows = answer.pop("follows", None)
        self._channel.send({"number": number, "answer": answer}, follows)

    def _end_in_silence(self) -> None:
        while time.monotonic() - self._heard_at < SILENCE_S:
            time.sleep(SILENCE_S / 10)
        self._service.stop()
        os._exit(3)


def main(tether: str) -> None:
    """Args: tether: source of the program that ties another one to its parent."""
    channel = open_channel()
    _Server(channel, HostService(channel, tether)).serve()
