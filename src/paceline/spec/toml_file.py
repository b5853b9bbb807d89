"""Read a TOML file that a person wrote, or raise an error that says what is wrong with it."""

from __future__ import annotations

import codecs
import shlex
import sys
from pathlib import Path
from typing import Any

from paceline.errors import SpecError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["read_toml", "tomllib"]

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_toml(path: Path, *, kind: str, where: str, form: str) -> dict[str, Any]:
    """Read the content of a file, which is not checked yet.

    Args:
        kind: what kind of file it is, in words.
        where: the hint for a missing file: how to get one.
        form: the hint for an invalid file: where its format is described.

    Raises:
        SpecError: the file does not exist, cannot be read, or is not TOML.
    """
    text = _text(path, kind, where)
    if not text.strip():
        raise SpecError(f"{path}: the {kind} file is empty", hint=where)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: not valid TOML: {error}", hint=form) from None


def _text(path: Path, kind: str, where: str) -> str:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise SpecError(f"{path}: no such {kind} file", hint=where) from None
    except IsADirectoryError:
        files = sorted(path.glob("*.toml"))
        hint = f"name a file in it: {files[0]}" if files else where
        raise SpecError(f"{path}: is a folder, and not a {kind} file", hint=hint) from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}", hint="check its path and permissions") from None
    try:
        # Editors of some systems begin a file with a byte-order mark.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = None
    if text is not None and "\0" not in text:
        return text
    if content[:2] in UTF_16 or content[1:2] == b"\0":
        raise SpecError(
            f"{path}: is written in UTF-16, and TOML is UTF-8",
            hint=f"save it as UTF-8, or: iconv -f UTF-16 -t UTF-8 {shlex.quote(str(path))} > utf8.toml",
        )
    raise SpecError(f"{path}: is no text in UTF-8, so it cannot be a {kind} file", hint=where)
