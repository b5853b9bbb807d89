"""The delay line: a program that is compiled once into the cache, and delays the packets of all links of a lab."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from paceline.errors import SiteError
from paceline.folders import cache_root
from paceline.sites.lab.layout import LabLink
from paceline.sites.lab.namespaces import Namespace
from paceline.sites.processes import cpu_seconds, tethered

SOURCE = Path(__file__).with_name("delay_line.cc")
COMPILERS = ("g++", "clang++", "c++")
TUN = "/dev/net/tun"


def lack_of_delay_line() -> str | None:
    """Why there can be no delay line here, with what to do about it; None if there can."""
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"{TUN} cannot be opened: run as root, or load the module tun"
    if not _program().exists() and _compiler() is None:
        return "no C++ compiler: apt install g++"
    return None


class DelayLine:
    """The running delay line, which ends when we do."""

    def __init__(self, switch: Namespace, hosts: Sequence[Namespace], link: LabLink) -> None:
        times = [f"{seconds * 1e9:.0f}" for seconds in (link.delay_s, link.jitter_s)]
        inits = [str(namespace.init) for namespace in (switch, *hosts)]
        self._popen = subprocess.Popen(
            tethered([*switch.enter(), str(_compiled()), *times, *inits]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._popen.stdout is not None
        first_line = self._popen.stdout.readline().decode()
        self.real_time = "fifo" in first_line
        """Whether the kernel runs it before all other processes; if not, it is late when the cores are busy."""
        if not first_line.startswith("ready"):
            self.end()
            raise SiteError(f"the delay line did not start: {first_line.strip()}")

    @property
    def pid(self) -> int:
        return self._popen.pid

    def cpu_s(self) -> float:
        """CPU seconds so far."""
        return cpu_seconds(self._popen.pid)

    def end(self) -> None:
        self._popen.kill()
        self._popen.wait()
        if self._popen.stdout is not None:
            self._popen.stdout.close()


def _compiler() -> str | None:
    return next((path for name in COMPILERS if (path := shutil.which(name))), None)


def _program() -> Path:
    """Where it is, or will be, in the cache: named after its source, so that another version is another program."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    return cache_root() / "lab" / f"delay-line-{digest}"


def _compiled() -> Path:
    program, compiler = _program(), _compiler()
    if program.exists():
        return program
    if compiler is None:
        raise SiteError("the delay line cannot be compiled", hint="apt install g++")
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        made = Path(folder, program.name)
        command = [compiler, "-O2", "-std=c++17", "-o", str(made), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SiteError(f"the delay line does not compile: {done.stderr.strip()[:300]}")
        made.replace(program)  # in one step: another process may look for it at the same time
    return program
