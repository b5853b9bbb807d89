"""The delay line: compiled once into the cache, one process for all links of a lab, tied to us like everything else."""

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
    """Why there can be no delay line here, with what to do; None if there can."""
    if not os.access(TUN, os.R_OK | os.W_OK):
        return f"{TUN} cannot be opened: run as root, or load the module tun"
    if not _program().exists() and _compiler() is None:
        return "no C++ compiler: apt install g++"
    return None


class DelayLine:
    """The running process."""

    def __init__(self, switch: Namespace, hosts: Sequence[Namespace], link: LabLink) -> None:
        times = [f"{seconds * 1e9:.0f}" for seconds in (link.delay_s, link.jitter_s)]
        inits = [str(one.init) for one in (switch, *hosts)]
        self._popen = subprocess.Popen(
            tethered([*switch.enter(), str(_compiled()), *times, *inits]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._popen.stdout is not None
        told = self._popen.stdout.readline().decode()
        self.real_time = "fifo" in told
        """Whether the kernel lets it run before everything else; without that it is late when the cores are busy."""
        if not told.startswith("ready"):
            self.end()
            raise SiteError(f"the delay line did not start: {told.strip()}")

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
    return next((found for name in COMPILERS if (found := shutil.which(name))), None)


def _program() -> Path:
    """Named after its source: another version is another program."""
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
        made.replace(program)  # at once, for another process may want it too
    return program
