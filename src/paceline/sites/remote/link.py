"""The connection to one agent: requests and answers from any thread, and word of which of its processes have ended."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from paceline.errors import SiteError
from paceline.sites.remote.agent.serve import SILENCE_S

ANSWER_S = 60.0
"""A host that has not answered by then is taken for dead."""
EXIT_LOST = -9
"""Exit code of processes on a host that is gone: nobody can tell how they ended."""
Answer = dict[str, Any]
"""JSON that an agent sent; `requests` reads it into types."""
In = TypeVar("In")
Out = TypeVar("Out")


class Link:
    """The connection to one agent."""

    def __init__(self, receive: Callable[[], bytes], send: Callable[[bytes], None], close: Callable[[], None]) -> None:
        """Args: receive, send: one frame; receive raises EOFError or OSError when the connection has ended."""
        self.name = "a host"
        """The name of the host, once it is known."""
        self.lost = False
        """Whether the connection has ended."""
        self._receive = receive
        self._send = send
        self._close = close
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._answers: dict[int, Answer] = {}
        self._files: dict[int, Path] = {}
        self._exit_codes: dict[int, int] = {}
        self._asked_at = time.monotonic()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._keep_awake, daemon=True).start()

    def ask(
        self,
        do: str,
        *,
        follows: Iterable[bytes] = (),
        into: Path | None = None,
        within_s: float = ANSWER_S,
        **fields: object,
    ) -> Answer:
        """Send one request and wait for its answer.

        Args:
            do: what to do: the name of a method of `agent.service.HostService`.
            follows: frames to send after the request.
            into: the file to write the frames to that follow the answer; None: none do.
            within_s: how long to wait.
            fields: the arguments of that method.

        Raises:
            SiteError: the host is gone, does not answer, or could not do it.
        """
        number = next(self._numbers)
        if into is not None:
            self._files[number] = into
        try:
            with self._sending:
                self._asked_at = time.monotonic()
                self._send(json.dumps({"number": number, "do": do, **fields}).encode())
                for frame in follows:
                    self._send(frame)
        except (OSError, ValueError):
            self._lose()
        with self._changed:
            self._changed.wait_for(lambda: number in self._answers or self.lost, timeout=within_s)
            answer = self._answers.pop(number, None)
        if answer is None:
            raise SiteError(
                f"{self.name} is gone" if self.lost else f"{self.name} did not answer within {within_s:g} s"
            )
        if "error" in answer:
            raise SiteError(f"{self.name}: {answer['error']}")
        return answer

    def wait(self, pid: int) -> int:
        """Block until this process of the agent ends; its exit code."""
        with self._changed:
            self._changed.wait_for(lambda: pid in self._exit_codes or self.lost)
            return self._exit_codes.get(pid, EXIT_LOST)

    def close(self) -> None:
        """End the connection, and with it the agent and all that it started."""
        with contextlib.suppress(OSError):
            self._close()

    def _listen(self) -> None:
        try:
            while True:
                message = json.loads(self._receive())
                if "ended" in message:
                    with self._changed:
                        self._exit_codes[message["pid"]] = message["code"]
                        self._changed.notify_all()
                    continue
                number, answer = message["number"], message["answer"]
                if into := self._files.pop(number, None):
                    self._take(into, answer)
                with self._changed:
                    self._answers[number] = answer
                    self._changed.notify_all()
        except (EOFError, OSError, ValueError):
            self._lose()

    def _take(self, into: Path, answer: Answer) -> None:
        if "error" in answer:
            return
        into.parent.mkdir(parents=True, exist_ok=True)
        with into.open("wb") as file:
            for frame in iter(self._receive, b""):
                file.write(frame)

    def _keep_awake(self) -> None:
        """An agent that hears nothing for long ends itself, so it is asked for its clock when there is nothing else."""
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
    """Do the same for all items at once; the first error, if any, is raised when all are done."""
    with ThreadPoolExecutor(max_workers=max(1, len(items))) as pool:
        futures = [pool.submit(do, item) for item in items]
    return [future.result() for future in futures]
