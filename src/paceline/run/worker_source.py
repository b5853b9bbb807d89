"""The private folder that a measured interpreter gets on its path: `paceline_worker` and nothing else.

Nothing of ours is installed into a measured environment, so its lock lists everything that is in it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from pathlib import Path

from paceline.errors import PacelineError


def worker_folder(cache: Path) -> Path:
    """A folder with a copy of the worker's source. It is named after the content, and made only once."""
    source = _source()
    folder = cache / "worker" / worker_digest()
    if not folder.exists():
        temporary = folder.with_name(f"{folder.name}.{os.getpid()}")
        for file in _files(source):
            target = temporary / "paceline_worker" / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        try:
            temporary.rename(folder)
        except OSError:  # another process has made the same folder meanwhile
            shutil.rmtree(temporary)
    return folder


def worker_digest() -> str:
    """A hash of the worker's source: what is proved with one source says nothing about another."""
    source = _source()
    digest = hashlib.sha256()
    for file in _files(source):
        digest.update(str(file.relative_to(source)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _files(source: Path) -> list[Path]:
    return sorted(source.rglob("*.py"))


def _source() -> Path:
    # Finding a top-level package does not import it: the host never runs worker code.
    spec = importlib.util.find_spec("paceline_worker")
    if spec is None or spec.origin is None:
        raise PacelineError("the worker's source is not installed beside Paceline", hint="reinstall: pip install .")
    return Path(spec.origin).parent
