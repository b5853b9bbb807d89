"""Facts of ranks: read in one place, each with its type; the worker sends those and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from paceline.record.fact import DerivedPhases, Staleness, facts_of
from paceline.record.facts import InputFacts, RankFacts

SOURCE = Path(__file__).parents[3] / "src"
WORKER = SOURCE / "paceline_worker"
MAKERS = {"traced", "_timed"}
"""Functions of the worker without "facts" in their name whose dictionaries become facts."""
VARIABLES = {"facts", "told", "learnt"}
"""What the worker calls dictionaries that become facts."""


def keys_of(expression: ast.expr) -> set[str]:
    """Keys of a dictionary as it is written: a literal, or a call of dict() with keywords."""
    if isinstance(expression, ast.Dict):
        return {key.value for key in expression.keys if isinstance(key, ast.Constant)}
    if isinstance(expression, ast.Call) and getattr(expression.func, "id", "") == "dict":
        named = {keyword.arg for keyword in expression.keywords if keyword.arg}
        return named.union(*(keys_of(argument) for argument in expression.args))
    if isinstance(expression, ast.Tuple):
        return set().union(*(keys_of(element) for element in expression.elts))
    if isinstance(expression, ast.IfExp):
        return keys_of(expression.body) | keys_of(expression.orelse)
    return set()


def sent_by(tree: ast.Module) -> set[str]:
    """Names of facts in one file: returned by functions that make facts, given as `facts=`, or put into such a
    dictionary later.
    """
    keys: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ("facts" in node.name or node.name in MAKERS):
            returned = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value]
            keys |= set().union(*map(keys_of, returned))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                name = getattr(target, "id", "")
                if name in VARIABLES:
                    keys |= keys_of(node.value)
                elif name.endswith("_FACTS") and isinstance(node.value, ast.Dict):
                    keys |= {value.value for value in node.value.values if isinstance(value, ast.Constant)}
                elif isinstance(target, ast.Subscript) and getattr(target.value, "id", "") in VARIABLES:
                    keys |= {target.slice.value} if isinstance(target.slice, ast.Constant) else set()
        elif isinstance(node, ast.Dict):
            named = zip(node.keys, node.values, strict=True)
            keys |= set().union(*(keys_of(value) for key, value in named if getattr(key, "value", "") == "facts"))
        elif isinstance(node, ast.Call):
            updates = getattr(node.func, "attr", "") == "update"
            if updates and getattr(getattr(node.func, "value", None), "id", "") in VARIABLES:
                keys |= {keyword.arg for keyword in node.keywords if keyword.arg}
                keys |= set().union(*(keys_of(k.value) for k in node.keywords if k.arg is None), set())
                keys |= set().union(*map(keys_of, node.args), set())
            keys |= set().union(*(keys_of(k.value) for k in node.keywords if k.arg == "facts"), set())
            if getattr(node.func, "attr", "") == "ready":
                keys |= {keyword.arg for keyword in node.keywords if keyword.arg}
    return keys


def test_worker_sends_the_facts_of_the_list_and_no_others() -> None:
    sent = set().union(*(sent_by(ast.parse(path.read_text(encoding="utf-8"))) for path in WORKER.rglob("*.py")))

    assert sent == {fact.name for fact in facts_of(RankFacts) if not fact.by_host}


def test_no_stage_reads_a_fact_by_its_key() -> None:
    reading = re.compile(r"\.(?:facts|inputs)(?:\.get\(|\[)[\"A-Z]")
    stages = list((SOURCE / "paceline").rglob("*.py"))
    found = [str(path) for path in stages if reading.search(path.read_text(encoding="utf-8"))]

    assert not found


def test_every_fact_has_a_meaning_in_a_sentence() -> None:
    for fact in (*facts_of(RankFacts), *facts_of(InputFacts)):
        assert re.fullmatch(r"[A-Z`].*[.…]", fact.meaning), fact.name


@pytest.mark.parametrize(
    ("name", "stored", "read"),
    [
        ("micro_batches", 4, 4),
        ("micro_batches", "four", None),
        ("waits", True, True),
        ("waits", 1, None),
        ("compile_s", 3, 3.0),
        ("compile_s", float("nan"), None),
        ("compile_s", True, None),
        ("compiled", False, False),
        ("bucket_bytes", [8, 16], (8.0, 16.0)),
        ("bucket_bytes", [8, "large"], None),
        ("losses", [[1.0, 0.5], [2.0, float("inf")]], ((1.0, 0.5), (2.0, float("inf")))),
        ("staleness", {"mean": 1.5, "max": 3}, Staleness(mean=1.5, max=3.0)),
        ("staleness", {"mean": 1.5}, None),
        ("phases_mixed", {"phases": ["update"]}, None),
        (
            "phases_derived",
            {"seconds": {"forward": 1, "backward": 2.0, "update": None}},
            DerivedPhases(by="differences", seconds={"forward": 1.0, "backward": 2.0}, step_s=3.0),
        ),
    ],
)
def test_fact_is_read_as_its_type_or_not_at_all(name: str, stored: object, read: object) -> None:
    assert getattr(RankFacts({name: stored}), name) == read
    assert getattr(RankFacts({}), name) is None


def test_fact_under_its_former_key_is_understood() -> None:
    assert RankFacts({"microbatches": 8}).pipeline_micro_batches == 8
    assert RankFacts({"microbatches": 8, "pipeline_micro_batches": 4}).pipeline_micro_batches == 4
