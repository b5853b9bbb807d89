"""The published JSON schemas, and whether a document is what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from referencing import Registry, Resource

SCHEMAS = Path(__file__).parents[1] / "docs" / "reference" / "schemas"
SUFFIX = ".schema.json"


def read_schema(name: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{name}{SUFFIX}").read_text(encoding="utf-8"))


def validator(name: str) -> jsonschema.Draft202012Validator:
    files = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.glob(f"*{SUFFIX}")}
    registry = Registry().with_resources((file, Resource.from_contents(data)) for file, data in files.items())
    return jsonschema.Draft202012Validator(files[f"{name}{SUFFIX}"], registry=registry)


def assert_valid(name: str, document: Any) -> None:
    errors = [f"{error.json_path}: {error.message[:300]}" for error in validator(name).iter_errors(document)]

    assert errors == []
