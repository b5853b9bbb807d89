"""What Paceline says to type or to read is there after `pip install`, away from a checkout."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from paceline.errors import documented

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "paceline"
FILE_OF_THE_REPOSITORY = re.compile(r"(?<![\w/{])(studies|docs|examples|validation|benchmarks|environments)/[\w.]")


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """All strings that are no docstrings."""
    told = {
        id(node.body[index].value)
        for node in ast.walk(tree)
        if isinstance(getattr(node, "body", None), list)
        for index in range(len(node.body))
        if isinstance(node.body[index], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.lineno, node.value


def test_no_message_names_a_file_that_only_a_checkout_has() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in strings(ast.parse(path.read_text(encoding="utf-8")))
        if FILE_OF_THE_REPOSITORY.search(text)
    ]

    assert found == []


def test_every_page_that_a_message_names_is_one_of_the_documentation() -> None:
    named = {
        node.args[0].value
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", None) == "documented"
        and isinstance(node.args[0], ast.Constant)
    }

    assert named
    assert [page for page in named if not (ROOT / "docs" / f"{page}.md").is_file()] == []


def test_a_page_is_named_as_the_documentation_names_it() -> None:
    assert documented("reference/study") == "see reference/study in the documentation"
