"""Programs that an agent starts on its host, and how all of them are ended."""

from __future__ import annotations

import contextlib
import glob
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence

GRACE_S = 2.0
"""Time for a process to have its last word between SIGTERM and SIGKILL."""
REAP_S = 10.0
"""A killed process that is not gone after this is stuck in the kernel; say so rather than wait for ever."""
OUTPUT_CHARACTERS = 20_000
"""How much of the output of a program is told, from its end."""
EXIT_TIMED_OUT, EXIT_NOT_STARTED = 124, 127
"""Exit codes as a shell gives them."""


class StartedProcesses:
    """The processes of one run on this host."""

    def __init__(self, tether: str, tell_end: Callable[[str, int, int], None]) -> None:
        """Args:
        tether: source of the program that ties another one to its parent.
        tell_end: called with name, process id and exit code when a process has ended.
        """
        self._tether = tether
        self._tell_end = tell_end
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._job: str | None = None

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str], folder: str, cores: Sequence[int]) -> int:
        """Start a program tied to this one, leader of its own group, its output in `folder/<name>.log`; its id."""
        os.makedirs(folder, exist_ok=True)
        self._job = env.get("PACELINE_JOB")
        tied = [sys.executable, "-I", "-S", "-c", self._tether, str(os.getpid()), ",".join(map(str, cores)), "--"]
        with open(os.path.join(folder, name + ".log"), "wb") as log:
            popen = subprocess.Popen(
                [*tied, *argv],
                env=env,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started[name] = popen
        threading.Thread(target=self._wait, args=(name, popen), daemon=True).start()
        return popen.pid

    def running(self) -> dict[str, int]:
        """Name → process id of those that have not ended."""
        return {name: popen.pid for name, popen in self._started.items() if popen.poll() is None}

    def stop(self) -> list[str]:
        """End everything that was started, for sure; the names of what the kernel would not let go."""
        started, self._started = self._started, {}
        for popen in started.values():
            _signal_group(popen.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for popen in started.values():
            _is_gone(popen, deadline - time.monotonic())
        for popen in started.values():
            _signal_group(popen.pid, signal.SIGKILL)
        if self._job:
            _sweep(self._job)
        return [name for name, popen in started.items() if not _is_gone(popen, REAP_S)]

    def _wait(self, name: str, popen: subprocess.Popen[bytes]) -> None:
        self._tell_end(name, popen.pid, popen.wait())


def run_to_end(argv: Sequence[str], env: Mapping[str, str], timeout_s: float) -> tuple[int, str]:
    """Run a program to its end, with these variables beside ours: its exit code and the end of its output."""
    try:
        done = subprocess.run(
            argv,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return EXIT_TIMED_OUT, f"not done after {timeout_s:g} s"
    except OSError as error:
        return EXIT_NOT_STARTED, str(error)
    return done.returncode, done.stdout.decode(errors="replace")[-OUTPUT_CHARACTERS:]


def _is_gone(popen: subprocess.Popen[bytes], within_s: float) -> bool:
    try:
        popen.wait(max(0.0, within_s))
    except subprocess.TimeoutExpired:
        return False
    return True


def _signal_group(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signum)


def _sweep(job: str) -> None:
    """Kill what was started for this job file and left its group."""
    mark = b"\0PACELINE_JOB=" + job.encode() + b"\0"
    for path in glob.glob("/proc/[0-9]*/environ"):
        with contextlib.suppress(OSError):
            with open(path, "rb") as file:
                is_ours = mark in b"\0" + file.read()
            if is_ours:
                os.kill(int(path.split("/")[2]), signal.SIGKILL)
