"""One measurement at a time on a machine: a lock that all users and stores share. A second `run` waits, and says so."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def lock_path() -> Path:
    """PACELINE_LOCK, else one file for the whole machine."""
    return Path(os.environ.get("PACELINE_LOCK") or Path(tempfile.gettempdir()) / "paceline-measuring.lock")


@contextlib.contextmanager
def machine_lock(say: Callable[[str], None], path: Path | None = None) -> Iterator[None]:
    """Hold the machine while measuring. The kernel gives it back when the holder dies, however it dies."""
    path = path or lock_path()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with contextlib.suppress(PermissionError):
            path.chmod(0o666)  # the umask took the others' right to wait for it
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            say(f"another measurement is running on this machine (process {holder}); waiting for it to end")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
