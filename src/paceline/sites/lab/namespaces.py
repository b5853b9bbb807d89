"""Hosts as anonymous namespaces, each held by an init process that ends when we end, even if we are killed.

No namespace has a name outside and nothing is made in the namespace of the machine, so nothing can be left there.
Without root all of this happens in a user namespace of our own, where the kernel allows that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache

from paceline.errors import SiteError
from paceline.sites.processes import tethered
from paceline.sites.remote.agent.usage import descendants

PROGRAMS = {"unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2", "tc": "iproute2"}
"""Programs that make the lab → the Debian package that has them."""
AS_ROOT, AS_USER = "root", "user namespace"
OWN_USER = ("--user", "--map-root-user")

INIT = """\
{{ hostname {name} || echo {name} > /proc/sys/kernel/hostname; }} 2>/dev/null
{names}
# The machine's default may be bbr, which fights with a token bucket.
echo reno > /proc/sys/net/ipv4/tcp_congestion_control
# Router and neighbour discovery would be traffic that nobody asked for.
echo 1 2>/dev/null > /proc/sys/net/ipv6/conf/default/disable_ipv6
ip link set lo up
echo ready
# This shell ends with the process that made this host, because its input is a pipe that only the maker holds open. That
# `unshare` has it killed when it dies itself is not enough: it may die after its fork, before it asked for that signal.
exec 3<&0
cat <&3 >/dev/null &
# Until then it reaps the processes of this namespace that lose their parent.
wait
"""

NAMES = """\
# Hosts of a cluster know each other, and themselves, by name. The file lies in memory and is gone with the namespace.
mount -t tmpfs names /tmp && echo '{lines}' > /tmp/hosts && mount --bind /tmp/hosts /etc/hosts && umount -l /tmp || exit
"""


class Namespace:
    """One host, or the switch: its namespaces and the process that holds them."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], *, own_user: bool) -> None:
        self.name = name
        self._popen = popen
        self._own_user = own_user
        self.init = 0
        """Process id of its init in our namespace."""

    def wait_until_ready(self) -> None:
        assert self._popen.stdout is not None
        first_line = self._popen.stdout.readline()
        children = descendants(self._popen.pid)
        if first_line.strip() != b"ready" or not children:
            raise SiteError(f"{self.name} did not start: {(first_line + self._popen.stdout.read()).decode().strip()}")
        self.init = children[0]

    def enter(self, *kinds: str) -> list[str]:
        """The beginning of a command line whose rest then runs in these namespaces of this host."""
        user = ["--user", "--preserve-credentials"] if self._own_user else []
        if not kinds and not user:
            return []
        return ["nsenter", "-t", str(self.init), *user, *(f"--{kind}" for kind in kinds)]

    def run(self, script: str) -> None:
        """Run a shell script in its network namespace.

        Raises:
            SiteError: a line failed, with what it printed.
        """
        done = subprocess.run(
            [*self.enter("net"), "sh", "-e", "-c", script], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SiteError(f"{self.name}: {(done.stderr or done.stdout).strip()}")

    def kill(self) -> None:
        """Do what a power cut does to a host: when its init is killed, the kernel kills all of its processes."""
        if self._popen.poll() is not None:
            return  # Its process id may be somebody else's by now.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.init:
                os.kill(self.init, signal.SIGKILL)
            else:
                self._popen.kill()

    def wait_until_gone(self) -> None:
        """Wait for the process that holds the init: it ends after the init, which ends last of all in its namespace."""
        self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()


def hold(
    name: str, *, addresses: Mapping[str, str] | None = None, within: Namespace | None = None, privilege: str
) -> Namespace:
    """Start the init of a new host, or of the switch; it can be used after `wait_until_ready`.

    Args:
        name: its host name.
        addresses: host name → address of all hosts that it knows by name; None: it needs to know none.
        within: the one whose user namespace it shares, without root; None for the first.
        privilege: how namespaces can be made here.
    """
    enter = within.enter() if within and privilege == AS_USER else []
    user = OWN_USER if privilege == AS_USER and within is None else ()
    make = ["unshare", *user, "--net", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child=SIGKILL"]
    by_name = {"localhost": "127.0.0.1", **(addresses or {})}
    lines = "\n".join(f"{address} {host}" for host, address in by_name.items())
    script = INIT.format(name=name, names=NAMES.format(lines=lines) if addresses else "")
    popen = subprocess.Popen(
        tethered([*enter, *make, "sh", "-c", script]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    return Namespace(name, popen, own_user=privilege == AS_USER)


def missing_programs() -> dict[str, str]:
    """Programs that are not here → the package that has them."""
    return {program: package for program, package in PROGRAMS.items() if shutil.which(program) is None}


@cache
def privilege() -> str | None:
    """How namespaces can be made here: AS_ROOT, AS_USER or None. One is made to find out, and is gone at once."""
    kinds = ["--net", "--uts", "--pid", "--mount-proc", "--fork"]
    if _works(["unshare", *kinds, "true"]):
        return AS_ROOT
    return AS_USER if _works(["unshare", *OWN_USER, *kinds, "true"]) else None


@cache
def has_netem() -> bool:
    """Whether the kernel can delay packets by itself. It is tried in a namespace that is gone at once."""
    user = OWN_USER if privilege() == AS_USER else ()
    return _works(["unshare", *user, "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"])


def _works(command: Sequence[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
