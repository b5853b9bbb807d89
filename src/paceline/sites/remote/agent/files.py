"""Files of a host: which are missing, what they hold, and their bytes in frames."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping

FRAME = 1 << 22
"""Bytes of a file that travel as one frame."""


def missing(digests: Mapping[str, str]) -> list[str]:
    """The paths at which there is no file with the wanted digest."""
    return [path for path, wanted in digests.items() if digest(path) != wanted]


def take(path: str, mode: int, receive: Callable[[], bytes]) -> None:
    """Write the frames that come, up to an empty one, as a file. It appears at its path only when it is complete."""
    part = f"{path}.{os.getpid()}.part"
    failed = None
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = open(part, "wb")  # noqa: SIM115
    except OSError as error:
        # The frames are sent whether they can be written or not, and the next request comes after them.
        file, failed = open(os.devnull, "wb"), error  # noqa: SIM115
    with file:
        file.writelines(iter(receive, b""))
    if failed:
        raise failed
    os.chmod(part, mode)
    os.replace(part, path)


def listing(folder: str) -> dict[str, str | None]:
    """Path within a folder → digest, for all regular files there; None for one that cannot be read."""
    digests = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                digests[os.path.relpath(path, folder)] = digest(path)
    return digests


def digest(path: str | os.PathLike[str]) -> str | None:
    """SHA-256 of a file; None where there is none that can be read."""
    sha256 = hashlib.sha256()
    try:
        for frame in frames(path):
            sha256.update(frame)
    except OSError:
        return None
    return sha256.hexdigest()


def frames(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The content of a file, one frame after the other."""
    with open(path, "rb") as file:
        while True:
            frame = file.read(FRAME)
            if not frame:
                return
            yield frame
