"""A user's own training program as a workload: which files it is made of, and their identity.

Nothing here executes it. Its files are the script, the modules beside it that it imports (found in the source, not by
importing), and what the study lists. They lie in or below the script's folder, and go to the workers as they are.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath
from typing import ClassVar, Literal

from paceline.errors import SpecError
from paceline.workloads.graph import HASH_DIGITS

HASH_PREFIX = "script:"
"""Distinguishes the hash of a program from the hash of a graph."""
PLACEHOLDERS = ("batch_per_worker", "batch_global", "workers", "threads", "seed")
"""Names that may be given in braces in a program's arguments."""
TORCHRUN, PLAIN = "torchrun", "plain"
LAUNCHES = (TORCHRUN, PLAIN)
"""How a program is started: with the variables that torchrun would set, or without them, as `python SCRIPT`."""
MOST_NAMES = 5000
"""Names that are looked at for a suggestion; a folder may hold a data set of millions of files."""
_IN_BRACES = re.compile(r"\{\{([^\W\d]\w*)\}\}|\{([^\W\d]\w*)\}")
"""A name in double braces, or in single ones. Other braces, of JSON for example, mean nothing to us."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A script and the files it needs."""

    kind: ClassVar[Literal["program"]] = "program"
    folder: Path
    """The folder of the script."""
    files: tuple[str, ...]
    """Names relative to the folder, the script first."""
    arguments: str
    """The text after the script on a command line; PLACEHOLDERS in braces are filled in for each trial."""
    hash: str
    """Hash of the names and contents of all files. The arguments are not part of it: they are options of the trial."""
    listed: str = ""
    """The further files that the study lists, as it lists them."""
    working_directory: Path | None = None
    """The current folder of the program; None if that is the copy of its files."""
    layer_kinds: ClassVar[frozenset[str]] = frozenset()

    @property
    def script(self) -> str:
        """Name of the file that is started."""
        return self.files[0]

    def argv(self, values: Mapping[str, object]) -> list[str]:
        """The arguments as words, with the trial's values for names in braces; double braces become single ones."""

        def filled(braces: re.Match[str]) -> str:
            return f"{{{braces[1]}}}" if braces[1] else str(values[braces[2]])

        return shlex.split(_IN_BRACES.sub(filled, self.arguments))

    def to_add(self, missing: str, script: str) -> str | None:
        """The line of a study that gives the program a file which it did not find; None if there is no such file.

        Args:
            missing: the file's name relative to the program's folder.
            script: the program as the study names it.
        """
        place = self.folder / missing
        if not place.exists():
            return None
        if not place.resolve().is_relative_to(self.folder):
            return f'working_directory = "{PurePath(script).parent}"'
        pattern = shlex.quote(missing) + ("/**/*" if place.is_dir() else "")
        return f'files = "{" ".join([*self.listed.split(), pattern])}"'

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Every file as it is now.

        Raises:
            SpecError: a file has changed since the trial was planned.
        """
        contents = [(name, (self.folder / name).read_bytes()) for name in self.files]
        if _hash(contents) != self.hash:
            raise SpecError(f"{self.script} changed since this was planned", hint="start again: paceline run STUDY")
        yield from contents


def unknown_placeholders(arguments: str) -> list[str]:
    """Names in braces that are not PLACEHOLDERS."""
    return [name for _, name in _IN_BRACES.findall(arguments) if name and name not in PLACEHOLDERS]


def read_program(script: Path, arguments: str = "", files: str = "", working_directory: Path | None = None) -> Program:
    """Find all files of a script.

    Args:
        script: the Python file to start.
        arguments: what follows it on the command line.
        files: further names or patterns, relative to the script's folder, separated by spaces.
        working_directory: its current folder; None for a copy of its files.

    Raises:
        SpecError: a file that is not there, lies elsewhere, or cannot be read.
    """
    try:
        if not script.is_file():
            beside = [path.name for path in sorted(script.parent.glob("*.py"))]
            raise SpecError(
                f"{script}: no such script",
                hint=f"paths are relative to the study file; {_meant(script.name, beside)}".removesuffix("; "),
            )
        if working_directory is not None and not working_directory.is_dir():
            raise SpecError(
                f"workload.working_directory: {working_directory} is no folder", hint="it is relative to the study file"
            )
        folder = script.resolve().parent
        names = {
            script.name: None,
            **dict.fromkeys(_imported(script.name, folder)),
            **dict.fromkeys(_listed(files, folder)),
        }
        digest = _hash([(name, (folder / name).read_bytes()) for name in names])
    except OSError as error:
        raise SpecError(f"{error.filename}: cannot be read: {error.strerror}", hint="check its permissions") from None
    return Program(
        folder=folder,
        files=tuple(names),
        arguments=arguments,
        hash=digest,
        listed=files,
        working_directory=None if working_directory is None else working_directory.resolve(),
    )


def _hash(contents: list[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(contents):
        digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return HASH_PREFIX + digest.hexdigest()[:HASH_DIGITS]


def _listed(patterns: str, folder: Path) -> Iterator[str]:
    for pattern in shlex.split(patterns):
        try:
            matching = [
                path for path in sorted(folder.glob(pattern)) if path.is_file() and "__pycache__" not in path.parts
            ]
        except (ValueError, NotImplementedError):  # an absolute pattern
            matching = []
        inside = [path for path in matching if path.resolve().is_relative_to(folder)]
        if not inside:
            meant = _meant(pattern, _names_below(folder))
            raise SpecError(
                f"workload.files: '{pattern}' is no file in or below {folder.name}/",
                hint=meant or "name what lies beside the script; data elsewhere: give its full path in arguments",
            )
        yield from (str(path.resolve().relative_to(folder)) for path in inside)


def _names_below(folder: Path) -> list[str]:
    below = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(str(path.relative_to(folder)) for path in islice(below, MOST_NAMES))


def _meant(wanted: str, names: Sequence[str]) -> str:
    """Names that may have been meant, as a question; "" if none is similar."""
    last = PurePath(wanted).name
    elsewhere = [name for name in names if PurePath(name).name == last]
    near = difflib.get_close_matches(wanted, names) + [
        name for name in names if difflib.get_close_matches(last, [PurePath(name).name], cutoff=0.75)
    ]
    suggestions = list(dict.fromkeys([*elsewhere, *near]))[:3]
    return f"did you mean {' or '.join(suggestions)}?" if suggestions else ""


def _imported(script: str, folder: Path) -> list[str]:
    """Modules beside the script that it imports, directly or through other modules."""
    seen = [script]
    for name in seen:
        for module in sorted(_modules(folder / name, tuple(Path(name).parent.parts))):
            seen += [file for file in _files_of(module, folder) if file not in seen]
    return seen[1:]


def _files_of(module: tuple[str, ...], folder: Path) -> Iterator[str]:
    """Files that importing a.b.c executes: a/__init__.py, a/b/__init__.py, a/b/c.py, where they exist in the folder."""
    for depth in range(1, len(module) + 1):
        place = Path(*module[:depth])
        for file in (place / "__init__.py", place.with_suffix(".py")):
            if (folder / file).is_file():
                yield str(file)


def _modules(file: Path, package: tuple[str, ...]) -> set[tuple[str, ...]]:
    """Every module that a file imports anywhere, names taken from modules included, since they may be modules too."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        # The file may need a newer Python than the host's; if it is wrong, its own interpreter will report that.
        return set()
    modules: set[tuple[str, ...]] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {tuple(alias.name.split(".")) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple((node.module or "").split(".")) if node.module else ()
            modules |= {base, *((*base, alias.name) for alias in node.names)}
    return modules - {()}
