"""Run the host's unit tests on every Python that the package says it supports, as far as this machine has them.

    make test-pythons                      # all that are here; the others are named as not run
    make test-pythons PYTHONS="3.10 3.13"  # these; one that is missing is a failure

The versions are the classifiers of pyproject.toml. Interpreters are looked for on PATH, in pyenv and in uv. Each gets an
environment of its own in the cache folder, which is kept, so that only the first time is slow.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ("tests/unit", "tests/test_architecture.py")
"""What needs nothing but the host. Contracts run on the Python of `make test`."""


def supported() -> list[str]:
    """The versions that pyproject.toml names in its classifiers."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)


def interpreters(version: str) -> Iterable[Path]:
    """Files that may be an interpreter of this version: on PATH, of pyenv, of uv, in this order."""
    for folder in os.get_exec_path():
        yield Path(folder) / f"python{version}"
    pyenv = Path(output("pyenv", "root") or os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    if path := output(uv, "python", "find", "--no-project", "--no-python-downloads", version):
        yield Path(path)


def output(*command: str) -> str:
    """What a program prints, or nothing where there is no such program or it fails."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def interpreter(version: str) -> Path | None:
    """The first candidate that runs and is of this version. A shim of pyenv may exist and still refuse to run."""
    program = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    candidates = (path for path in interpreters(version) if path.exists())
    return next((path for path in candidates if output(str(path), "-c", program) == version), None)


def cache_folder() -> Path:
    """Beside Paceline's other caches, found in the same order."""
    cache = os.environ.get("PACELINE_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return (Path(cache) if cache else Path(home) / "paceline") / "pythons"


def passes(python: Path, version: str, pytest_args: list[str]) -> bool:
    """Whether the unit tests pass on this interpreter."""
    environment = cache_folder() / version
    own = environment / "bin" / "python"
    if not own.exists():
        subprocess.run([python, "-m", "venv", environment], check=True)
    subprocess.run([own, "-m", "pip", "install", "-qq", "--editable", f"{ROOT}[dev]"], check=True)
    return subprocess.run([own, "-m", "pytest", "-q", *TESTS, *pytest_args], cwd=ROOT, check=False).returncode == 0


def main() -> int:
    """Print one line for each version; fail where a test fails or a version that was asked for is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", choices=[*supported(), []], metavar="VERSION")
    args, pytest_args = parser.parse_known_args()
    lines, failed = [], False
    for version in args.versions or supported():
        python = interpreter(version)
        if python is None:
            failed |= bool(args.versions)
            lines.append(f"Python {version}: not run, no interpreter on PATH, in pyenv or in uv")
            continue
        print(f"Python {version}: {python}", flush=True)
        ok = passes(python, version, pytest_args)
        failed |= not ok
        lines.append(f"Python {version}: {'passed' if ok else 'FAILED'}")
    print("\n".join(lines))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
