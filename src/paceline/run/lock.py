"""A lock that all users and stores of a machine share, so that one measurement runs at a time. A second one waits.

Its file lies where everybody may write, and a measurement may run as root. So the file is examined before it is
changed: a link, a second name of another file, or a file with other content is refused.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from paceline.errors import SiteError

SAFELY = os.O_NOFOLLOW | os.O_CLOEXEC
LONGEST = 32
"""The most bytes of a lock: a process id and a line end."""


def lock_path() -> Path:
    """PACELINE_LOCK, or else one file for the whole machine, whatever TMPDIR a user or a batch system has set."""
    shared = Path("/tmp")  # noqa: S108  all users have to share it
    folder = shared if shared.is_dir() else Path(tempfile.gettempdir())
    return Path(os.environ.get("PACELINE_LOCK") or folder / "paceline-measuring.lock")


@contextlib.contextmanager
def machine_lock(say: Callable[[str], None], path: Path | None = None) -> Iterator[None]:
    """Hold the lock while this context is open. The kernel releases it when the holder ends, even if it is killed.

    Raises:
        SiteError: the lock file can be neither opened nor made.
    """
    path = path or lock_path()
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, LONGEST, 0).decode(errors="replace").strip() or "unknown"
            say(f"another measurement is running on this machine (process {holder}); waiting for it to end")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open the file of the lock, and make it, writable for all users, where there is none."""
    try:
        # First without O_CREAT: in a sticky folder many systems refuse O_CREAT for a file of another user.
        with contextlib.suppress(FileNotFoundError):
            return _checked(os.open(path, os.O_RDWR | SAFELY), path)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | SAFELY, 0o666)
            os.fchmod(descriptor, 0o666)  # the umask may have removed the right of others to open it
            return descriptor
        # Another process made it in between.
        return _checked(os.open(path, os.O_RDWR | SAFELY), path)
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP or path.is_symlink() else error.strerror
        raise _refused(path, reason or "unknown") from None


def _checked(descriptor: int, path: Path) -> int:
    """The same descriptor if its file is a lock; else it is closed, and an error raised."""
    reason = _no_lock(descriptor)
    if reason is None:
        return descriptor
    os.close(descriptor)
    raise _refused(path, reason)


def _no_lock(descriptor: int) -> str | None:
    """Why an open file cannot be a lock of Paceline, or None."""
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        return "it is not a regular file"
    if facts.st_nlink > 1:
        return "it has other hard links: what is written to it would change another file"
    if not re.fullmatch(rb"\d*\n?", os.pread(descriptor, LONGEST + 1, 0)) or facts.st_size > LONGEST:
        return "it is not a lock of Paceline: it has other contents"
    return None


def _refused(path: Path, reason: str) -> SiteError:
    return SiteError(
        f"{path}: the machine's lock cannot be opened: {reason}",
        hint="remove it if it is yours, or name another, the same for all users: export PACELINE_LOCK=/path/to/lock",
    )
