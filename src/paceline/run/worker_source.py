"""The private folder that a measured interpreter gets on its path: `paceline_worker` and nothing else.

Nothing of ours is installed into a measured environment, so its lock stays the whole truth.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from pathlib import Path

from paceline.errors import PacelineError


def worker_folder(cache: Path) -> Path:
    """A folder holding a copy of the worker's source, named after its content; made once."""
    source = _source()
    files = sorted(source.rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(str(file.relative_to(source)).encode() + b"\0" + file.read_bytes())
    folder = cache / "worker" / digest.hexdigest()[:16]
    if not folder.exists():
        temporary = folder.with_name(f"{folder.name}.{os.getpid()}")
        for file in files:
            target = temporary / "paceline_worker" / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        try:
            temporary.rename(folder)
        except OSError:  # somebody else made the same content meanwhile
            shutil.rmtree(temporary)
    return folder


def _source() -> Path:
    # Finding a top-level package does not import it: the host never runs worker code.
    spec = importlib.util.find_spec("paceline_worker")
    if spec is None or spec.origin is None:
        raise PacelineError("the worker's source is not installed beside Paceline", hint="reinstall: pip install .")
    return Path(spec.origin).parent
