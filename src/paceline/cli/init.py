"""`paceline init [FILE]`: writes a study to start from: a commented one, or one of those that come with Paceline."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from paceline.cli.output import add_common, emit, say, show, width
from paceline.cli.subcommands import Subcommands
from paceline.errors import SpecError
from paceline.spec.examples import Example, example_named, examples, first_study

FILE = "study.toml"
"""The default name of a new study file."""


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("init", help="write a study to start from, or one of the examples")
    parser.add_argument("file", nargs="?", metavar="FILE", help=f"where to write it (default: {FILE}, or NAME.toml)")
    parser.add_argument("--example", metavar="NAME", help="one of the shipped studies, with the files it names")
    parser.add_argument("--list", action="store_true", help="list the shipped studies and write nothing")
    parser.add_argument("--force", action="store_true", help="overwrite files that are there")
    add_common(parser, store=False)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    if args.list:
        return _list(args)
    example = example_named(args.example) if args.example else None
    target = Path(args.file or (f"{example.name}.toml" if example else FILE))
    copies = example.copies(target) if example else {target: first_study(_name(target)).encode()}
    _write(copies, force=args.force)
    written = [str(path) for path in copies]
    if args.json:
        emit(_document(example=args.example, file=str(target), written=written, next=f"paceline run {target}"))
        return 0
    for path in written:
        show(f"written: {path}")
    say(f"next: paceline plan {target}   (what it would do), then: paceline run {target}")
    return 0


def _list(args: argparse.Namespace) -> int:
    shipped = examples()
    if args.json:
        described = [_described(example) for example in shipped.values()]
        emit(_document(examples=described, next="paceline init --example NAME"))
        return 0
    from paceline.report.table import Column, draw

    questions = tuple(example.question for example in shipped.values())
    names = Column(header="example", cells=tuple(shipped), right=False)
    show(draw(names, [Column(header="question", cells=questions, right=False, wraps=True)], width()))
    say("next: paceline init --example NAME")
    return 0


def _described(example: Example) -> dict[str, object]:
    return {"name": example.name, "question": example.question, "files": list(example.files)}


def _document(**fields: object) -> dict[str, object]:
    return {"example": None, "file": None, "written": [], "examples": [], **fields}


def _name(target: Path) -> str:
    """Returns a valid name for a study, from the name of its file."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", target.stem).strip("-_") or "study"


def _write(copies: Mapping[Path, bytes], *, force: bool) -> None:
    """Writes all files, or none if one of them exists already.

    Raises:
        SpecError: a file exists, or cannot be written.
    """
    there = [path for path in copies if path.exists()]
    if there and not force:
        raise SpecError(
            f"{', '.join(map(str, there))}: there is such a file already",
            hint="name another file, or overwrite it with --force",
        )
    for path, content in copies.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise SpecError(f"{path}: cannot be written: {error.strerror}", hint="name another file") from None
