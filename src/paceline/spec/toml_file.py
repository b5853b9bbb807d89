"""A TOML file that a person wrote, or an error that says what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from paceline.errors import SpecError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["read_toml", "tomllib"]


def read_toml(path: Path, *, kind: str, where: str, form: str) -> dict[str, Any]:
    """Its content.

    Args:
        kind: what sort of file it is, in words.
        where: how to find one that is there.
        form: where its form is described.

    Raises:
        SpecError: it is not there, cannot be read, or is not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SpecError(f"{path}: no such {kind} file", hint=where) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}", hint="check its path and permissions") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: not valid TOML: {error}", hint=form) from None
