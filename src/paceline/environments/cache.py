"""Where environments are kept on this machine: the cache folder, its locks, its free space."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from paceline.environments.base import Say
from paceline.errors import EnvironmentBuildError
from paceline.units import format_bytes

MOVE_HINT = "free space: paceline env remove NAME   or keep environments elsewhere: export PACELINE_CACHE=/big/disk"


def free_bytes(folder: Path) -> int:
    """Free space on the disk of the folder, which need not exist yet."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free


def lack_of_space(needed: int, folder: Path, free: int | None = None) -> str | None:
    """Why so many bytes do not fit into the folder, in words; None if they fit."""
    free = free_bytes(folder) if free is None else free
    if free >= needed:
        return None
    return f"needs {format_bytes(needed)} of disk in {folder}, {format_bytes(free)} are free"


def tree_bytes(folder: Path) -> int:
    """Size of all files below a folder."""
    total = 0
    for path, _, files in os.walk(folder):
        total += sum(os.lstat(os.path.join(path, name)).st_size for name in files)  # noqa: PTH118  many files
    return total


@contextmanager
def exclusive(path: Path, say: Say | None = None, waiting: str = "") -> Iterator[int]:
    """Hold a lock file until the block ends, after waiting for its present holder; yields the file's descriptor.

    A child that inherits the descriptor keeps the lock after we die: an installer that outlives a killed host
    never writes into the folder of the next builder. The file itself stays, since removing it would race.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise EnvironmentBuildError(
            f"the cache cannot be written: {path.parent}: {error.strerror}",
            hint="choose another folder: export PACELINE_CACHE=/some/folder",
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if say:
                say(waiting)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether somebody holds a lock file now."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def users_of(folder: Path) -> list[int]:
    """Processes that were started with a program of this folder."""
    inside = f"{folder}{os.sep}"
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if any(word.startswith(inside) for word in (process.info["cmdline"] or [])[:1])
    ]


def remove_tree(folder: Path) -> None:
    """Delete a folder so that a crash during deletion leaves nothing that looks like a finished environment."""
    if not folder.exists():
        return
    doomed = folder.with_name(f".{folder.name}.doomed-{os.getpid()}")
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def sweep(folder: Path, name: str) -> None:
    """Delete the leftovers of killed builds and removals of this name; the caller must hold the name's lock."""
    for left in (
        *folder.glob(f".{name}-*.doomed-*"),
        *folder.glob(f".{name}-*.aside"),
        folder / f".{name}.scratch",
    ):
        shutil.rmtree(left, ignore_errors=True)
