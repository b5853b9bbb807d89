"""One measurement at a time on a machine: a lock that all users and stores share. A second `run` waits, and says so."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from paceline.errors import SiteError


def lock_path() -> Path:
    """PACELINE_LOCK, else one file for the whole machine, whatever TMPDIR a user or a batch system has set."""
    shared = Path("/tmp")  # noqa: S108  shared by all users is just what it is for
    folder = shared if shared.is_dir() else Path(tempfile.gettempdir())
    return Path(os.environ.get("PACELINE_LOCK") or folder / "paceline-measuring.lock")


@contextlib.contextmanager
def machine_lock(say: Callable[[str], None], path: Path | None = None) -> Iterator[None]:
    """Hold the machine while measuring. The kernel gives it back when the holder dies, however it dies.

    Raises:
        SiteError: the lock file can be neither opened nor made.
    """
    path = path or lock_path()
    try:
        descriptor = _open(path)
    except OSError as error:
        raise SiteError(
            f"{path}: the machine's lock cannot be opened: {error.strerror}",
            hint="name a file you may write, the same for all users: export PACELINE_LOCK=/path/to/lock",
        ) from None
    try:
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


def _open(path: Path) -> int:
    # First without O_CREAT: in a sticky folder many systems refuse to "create" what another user has made.
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDWR)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with contextlib.suppress(PermissionError):
        path.chmod(0o666)  # the umask took the others' right to wait for it
    return descriptor
