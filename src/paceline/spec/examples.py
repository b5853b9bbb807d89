"""The studies that ship with Paceline, each with the files it names, and a commented one to start from.

They are read from the wheel (`shipped` beside this file) or in a checkout (`studies/` and `examples/` at its top).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paceline.errors import SpecError, did_you_mean
from paceline.spec.load import load_study
from paceline.spec.study import Study

_IN_WHEEL = Path(__file__).parent / "shipped"
_IN_CHECKOUT = Path(__file__).parents[3]
_FOLDERS = ("studies", "examples")
_FIRST = Path(__file__).with_name("first_study.toml")
_NAMING = ("workload.model", "workload.script", "workload.files")
"""Keys whose values may name files beside the study."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A study that can be copied."""

    name: str
    """The name of the study."""
    question: str
    """The question it answers."""
    path: Path
    """The shipped study file."""
    files: tuple[str, ...]
    """Files beside the study that it names and needs."""

    def copies(self, target: Path) -> dict[Path, bytes]:
        """File to write → its content: the study as `target`, and beside it the files that the study names."""
        beside = {target.parent / name: (self.path.parent / name).read_bytes() for name in self.files}
        return {target: self.path.read_bytes()} | beside


def examples() -> dict[str, Example]:
    """Name → shipped study; studies that need no other files come first."""
    place = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT
    paths = [
        path
        for folder in _FOLDERS
        for path in sorted((place / folder).rglob("*.toml"), key=lambda path: (len(path.parts), path.stem))
    ]
    loaded = [(path, load_study(path)) for path in paths]
    return {
        study.name: Example(name=study.name, question=study.question, path=path, files=_files(study))
        for path, study in loaded
    }


def example_named(name: str) -> Example:
    """The example of that name.

    Raises:
        SpecError: there is none; the hint has the nearest name.
    """
    shipped = examples()
    if name not in shipped:
        raise SpecError(f"--example: no example is called '{name}'", hint=did_you_mean(name, shipped))
    return shipped[name]


def first_study(name: str) -> str:
    """A commented study to start from, with the given name."""
    return _FIRST.read_text(encoding="utf-8").replace('name = "first"', f'name = "{name}"', 1)


def _files(study: Study) -> tuple[str, ...]:
    values = [value for key in _NAMING for value in study.optional_values(key, str)]
    named = [word for value in values if value for word in value.split()]
    return tuple(
        sorted(
            path.relative_to(study.folder).as_posix()
            for word in dict.fromkeys(named)
            for path in study.folder.glob(word)
            if path.is_file()
        )
    )
