"""Our end of an agent: ask and be answered, from any thread; hear which of its processes ended."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from paceline.errors import SiteError
from paceline.sites.remote.agent import FRAME, SILENCE_S

ANSWER_S = 60.0
"""A host that has not answered by then is taken for dead."""
TRIPS = 8
"""Of which the shortest is believed when clocks are compared."""
GONE: dict[str, Any] = {"processes": {}, "sent_bytes": 0, "received_bytes": 0}
In = TypeVar("In")
Out = TypeVar("Out")
LOST = -9
"""Exit code of processes on a host that is gone: nobody can tell how they ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockOffset:
    """How far a host's clock is ahead of ours."""

    offset_s: float
    error_s: float
    """Half of the round trip: the truth lies within."""


class Agent:
    """One host, as we reach it."""

    def __init__(self, receive: Callable[[], bytes], send: Callable[[bytes], None], close: Callable[[], None]) -> None:
        """Args: receive, send: one frame; receive raises EOFError or OSError when the connection is over."""
        self._receive = receive
        self._send = send
        self._close = close
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._answers: dict[int, dict[str, Any]] = {}
        self._files: dict[int, Path] = {}
        self._ended: dict[int, int] = {}
        self._asked_at = time.monotonic()
        self._usage: tuple[float, dict[str, Any]] = (float("-inf"), GONE)
        self.lost = False
        self.delivered: set[tuple[str, int, int]] = set()
        """Files that are there: path, size and time of change."""
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._keep_awake, daemon=True).start()
        self.about: dict[str, Any] = self.ask("hello")
        self.name: str = self.about["name"]

    def ask(
        self, do: str, *, follows: Iterable[bytes] = (), within_s: float = ANSWER_S, **fields: Any
    ) -> dict[str, Any]:
        """One request and its answer.

        Raises:
            SiteError: the host is gone, does not answer, or could not do it.
        """
        number = next(self._numbers)
        return self._answer(number, {"number": number, "do": do, **fields}, follows, within_s)

    def get(self, path: str, into: Path) -> None:
        """Bring a file home."""
        number = next(self._numbers)
        self._files[number] = into
        self._answer(number, {"number": number, "do": "get", "path": path}, (), ANSWER_S)

    def put(self, path: Path) -> None:
        """Take a file there, to the same path."""
        status = path.stat()
        with path.open("rb") as file:
            frames = iter(lambda: file.read(FRAME), b"")
            # As many as come, then an empty one: a file may be longer than it says.
            self.ask("put", path=str(path), mode=status.st_mode & 0o777, follows=itertools.chain(frames, [b""]))

    def wait(self, pid: int) -> int:
        """Block until a process of it ends; its exit code."""
        with self._changed:
            self._changed.wait_for(lambda: pid in self._ended or self.lost)
            return self._ended.get(pid, LOST)

    def fresh_usage(self, within_s: float) -> dict[str, Any]:
        """What its processes and devices have used, not older than this; of a host that is gone the last word."""
        at, told = self._usage
        if time.monotonic() - at > within_s and not self.lost:
            with contextlib.suppress(SiteError):
                told = self.ask("usage")
            self._usage = (time.monotonic(), {**told, "processes": {} if self.lost else told["processes"]})
        return self._usage[1]

    def clock_offset(self) -> ClockOffset:
        """Compare clocks: the host's time was told somewhere between question and answer."""
        best = None
        for _ in range(TRIPS):
            asked, began = time.time(), time.monotonic()
            told = self.ask("clock")["unix_s"]
            trip = time.monotonic() - began
            if best is None or trip < 2 * best.error_s:
                best = ClockOffset(offset_s=told - (asked + trip / 2), error_s=trip / 2)
        assert best is not None
        return best

    def close(self) -> None:
        """End the connection, and with it the agent and all that it started."""
        with contextlib.suppress(OSError):
            self._close()

    def _answer(
        self, number: int, request: dict[str, Any], follows: Iterable[bytes], within_s: float
    ) -> dict[str, Any]:
        try:
            with self._sending:
                self._asked_at = time.monotonic()
                self._send(json.dumps(request).encode())
                for frame in follows:
                    self._send(frame)
        except (OSError, ValueError):
            self._lose()
        with self._changed:
            self._changed.wait_for(lambda: number in self._answers or self.lost, timeout=within_s)
            answer = self._answers.pop(number, None)
        if answer is None:
            name = getattr(self, "name", "a host")
            raise SiteError(f"{name} is gone" if self.lost else f"{name} did not answer within {within_s:g} s")
        if "error" in answer:
            raise SiteError(f"{getattr(self, 'name', 'a host')}: {answer['error']}")
        return answer

    def _listen(self) -> None:
        try:
            while True:
                told = json.loads(self._receive())
                if "ended" in told:
                    with self._changed:
                        self._ended[told["pid"]] = told["code"]
                        self._changed.notify_all()
                    continue
                number, answer = told["number"], told["answer"]
                if into := self._files.pop(number, None):
                    self._take(into, answer)
                with self._changed:
                    self._answers[number] = answer
                    self._changed.notify_all()
        except (EOFError, OSError, ValueError):
            self._lose()

    def _take(self, into: Path, answer: dict[str, Any]) -> None:
        if "error" in answer:
            return
        into.parent.mkdir(parents=True, exist_ok=True)
        with into.open("wb") as file:
            for frame in iter(self._receive, b""):
                file.write(frame)

    def _keep_awake(self) -> None:
        """An agent that hears nothing for long ends itself."""
        while not self.lost:
            time.sleep(SILENCE_S / 12)
            if time.monotonic() - self._asked_at > SILENCE_S / 6:
                with contextlib.suppress(SiteError):
                    self.ask("clock")

    def _lose(self) -> None:
        with self._changed:
            self.lost = True
            self._changed.notify_all()


def in_parallel(do: Callable[[In], Out], items: Sequence[In]) -> list[Out]:
    """The same for all at once; the first error, if any, once all are done."""
    with ThreadPoolExecutor(max_workers=max(1, len(items))) as pool:
        futures = [pool.submit(do, item) for item in items]
    return [future.result() for future in futures]
