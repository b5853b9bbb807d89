"""Control groups that give each host its cores, or a share of them: version 1 or 2, whichever has the `cpu` controller.

The name of a lab's folders has the process id and the start time of their owner, so that those of an owner who was
killed are recognised for sure, and nobody else's are ever removed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PERIOD_US = 10_000
"""The period of a quota. The shorter it is, the less a step notices that its host is stopped and resumed. But the
kernel checks quotas at its ticks, usually of 4 ms: with a period of 5 ms and a core that never sleeps hosts got four
fifths of their share, with 8 ms all of it."""
LEAST_QUOTA_US = 1_000
"""The smallest quota that the kernel takes."""
PREFIX = "paceline-lab"
_IDLE = ".idle"
_NAME = re.compile(rf"{PREFIX}\.(\d+)\.(\d+)({re.escape(_IDLE)})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Bases:
    """Where control groups can be made."""

    version: int
    cpu: Path
    """Folder below which groups with quotas are made."""
    cpuset: Path | None
    """Folder below which groups with cores are made: another one in version 1, the same in version 2; None: no such
    controller."""

    @property
    def folders(self) -> list[Path]:
        return list(dict.fromkeys([self.cpu, *([self.cpuset] if self.cpuset else [])]))


def find_bases(root: str = "/") -> Bases | None:
    """Where we may make control groups; None where we may not. Only looks: nothing is changed."""
    try:
        mounts = Path(root, "proc/self/mounts").read_text(encoding="utf-8")
        own = Path(root, "proc/self/cgroup").read_text(encoding="utf-8")
    except OSError:
        return None
    at: dict[str, Path] = {}
    for line in mounts.splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup":
            at |= {name: Path(root, folder.lstrip("/")) for name in options.split(",") if name in {"cpu", "cpuset"}}
        elif kind == "cgroup2":
            at["unified"] = Path(root, folder.lstrip("/"))
    if "cpu" in at:
        # Below our own group, so that our limits hold for the lab too.
        lines = [line.split(":", 2) for line in own.splitlines()]
        own_groups = {name: path for _, names, path in lines for name in names.split(",")}
        folders = {name: _below(at[name], own_groups.get(name, "/")) for name in ("cpu", "cpuset") if name in at}
        if not all(os.access(folder, os.W_OK) for folder in folders.values()):
            return None
        return Bases(version=1, cpu=folders["cpu"], cpuset=folders.get("cpuset"))
    if "unified" in at and os.access(at["unified"] / "cgroup.subtree_control", os.W_OK):
        # Except for the top one, a group that has processes cannot have groups with controllers below it.
        controllers = (at["unified"] / "cgroup.controllers").read_text(encoding="ascii").split()
        if "cpu" in controllers:
            return Bases(version=2, cpu=at["unified"], cpuset=at["unified"] if "cpuset" in controllers else None)
    return None


def _below(mount: Path, own: str) -> Path:
    below = mount / own.lstrip("/")
    return below if below.is_dir() else mount


def quota_us(cores: float) -> tuple[int, int]:
    """(quota, period) in microseconds for the CPU time of so many cores."""
    return max(LEAST_QUOTA_US, round(cores * PERIOD_US)), PERIOD_US


def owner_of_this_process() -> str:
    return f"{os.getpid()}.{_start_time(os.getpid())}"


class Groups:
    """The control groups of one lab."""

    def __init__(self, bases: Bases, owner: str) -> None:
        self._bases = bases
        self._name = f"{PREFIX}.{owner}"

    def make(self, host: str, cores: Sequence[int], quota: float | None) -> list[Path]:
        """Make the groups of one host; the folders that its processes join."""
        for base in self._bases.folders:
            self._make_top(base / self._name)
        folders = []
        for base in self._bases.folders:
            folder = base / self._name / host
            folder.mkdir(exist_ok=True)
            folders.append(folder)
        if self._bases.cpuset:
            folder = self._bases.cpuset / self._name / host
            if self._bases.version == 1:
                _copy("cpuset.mems", folder.parent, folder)
            _write(folder / "cpuset.cpus", ",".join(map(str, cores)))
        self.limit(host, quota)
        return folders

    def _make_top(self, top: Path) -> None:
        if self._bases.version == 2:
            wanted = "+cpu +cpuset" if self._bases.cpuset else "+cpu"
            _write(top.parent / "cgroup.subtree_control", wanted)
            top.mkdir(exist_ok=True)
            _write(top / "cgroup.subtree_control", wanted)
            return
        top.mkdir(exist_ok=True)
        if top.parent == self._bases.cpuset:
            for name in ("cpuset.cpus", "cpuset.mems"):
                _copy(name, top.parent, top)

    def limit(self, host: str, quota: float | None) -> None:
        """Limit a host to the CPU time of so many cores; None: no limit but its cores."""
        folder = self._bases.cpu / self._name / host
        if self._bases.version == 2:
            _write(folder / "cpu.max", "max" if quota is None else "{} {}".format(*quota_us(quota)))
        elif quota is None:
            _write(folder / "cpu.cfs_quota_us", "-1")
        else:
            allowed, period = quota_us(quota)
            _write(folder / "cpu.cfs_quota_us", "-1")
            _write(folder / "cpu.cfs_period_us", str(period))
            _write(folder / "cpu.cfs_quota_us", str(allowed))

    def make_idle(self) -> Path:
        """Make a group for processes that only run when nobody else wants the core.

        It lies beside the groups of the hosts and not below them, where its time would count as theirs.
        """
        folder = self._bases.cpu / f"{self._name}{_IDLE}"
        folder.mkdir(exist_ok=True)
        if (folder / "cpu.idle").exists():
            _write(folder / "cpu.idle", "1")
        else:  # before Linux 5.15
            _write(folder / ("cpu.weight" if self._bases.version == 2 else "cpu.shares"), "2")
        return folder

    def remove(self) -> bool:
        """Remove all of them; False while a process that was killed has not left its group yet."""
        tops = [base / self._name for base in self._bases.folders]
        removed = [_remove(top) for top in (*tops, self._bases.cpu / f"{self._name}{_IDLE}")]
        return all(removed)


def sweep(bases: Bases) -> list[str]:
    """Remove the groups of labs whose owner is gone, and nothing else; what was removed."""
    removed = []
    for base in bases.folders:
        for folder in base.glob(f"{PREFIX}.*.*"):
            match = _NAME.fullmatch(folder.name)
            if match and _start_time(int(match[1])) != match[2] and _remove(folder):
                removed.append(str(folder))
    return removed


def _start_time(pid: int) -> str | None:
    """When a process started, in the kernel's ticks since boot; None: there is no such process."""
    try:
        # The second field is a name in brackets that may hold anything.
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    except OSError:
        return None


def _remove(top: Path) -> bool:
    """Remove a group and those below it. They are removed as folders; the files in them belong to the kernel."""
    with contextlib.suppress(OSError):
        for folder in [entry for entry in top.iterdir() if entry.is_dir()]:
            folder.rmdir()
        top.rmdir()
    return not top.exists()


def _copy(name: str, source: Path, target: Path) -> None:
    _write(target / name, (source / name).read_text(encoding="ascii").strip())


def _write(path: Path, value: str) -> None:
    path.write_text(value, encoding="ascii")
