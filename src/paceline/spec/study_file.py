"""A study written as the TOML file that `load_study` reads back to the same trials, with some of its keys changed.

Owns how values look in a file. Knows no trial: whoever has one says which keys and values make it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from paceline.spec.catalog import SECTIONS
from paceline.spec.load import OF_A_MODEL
from paceline.spec.networks import NETWORKS
from paceline.spec.study import Network, Repeats, Study

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")
_OF_FRAMEWORKS = ("interpreter", "environment")
"""Keys that stand in [framework] for the only framework, and in [framework.NAME] for one of several."""
_UNITS = {"time_limit": "s", "memory_limit": "B"}
"""Keys that are read with a unit → that of the number which came out."""
_NAMED_BY = {"framework": "name", "workload": "model", "cluster": "site"}
"""Sections with further tables → the key that names those."""

Table = dict[str, tuple[Any, ...]]


def study_text(study: Study, *, name: str, question: str, axes: Mapping[str, Any]) -> str:
    """The study under another name, with other values of some keys.

    Args:
        study: what is written.
        name: of the new one.
        question: of the new one.
        axes: "section.key", or "section.NAME.key" for what stands in [section.NAME] → its value, or several as a tuple
            or a list. None: left out, so that the default holds. What is set here holds for every model: values that a
            model has of its own go, and so do tables of frameworks, models and sites that are no longer there.
    """
    tables = _tables(study)
    for full, value in axes.items():
        section, _, rest = full.partition(".")
        owner, _, key = rest.rpartition(".")
        values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        if full in OF_A_MODEL:
            for title, table in tables.items():
                if title[0] == "workload" and title[1]:
                    table.pop(key, None)
        tables.setdefault((section, owner), {})[key] = tuple(one for one in values if one is not None)
    tables["study", ""] = {"name": (name,), "question": (question,) if question else ()}
    kept = {title: table for title, table in tables.items() if not title[1] or title[1] in _names(tables, title[0])}
    in_order = sorted(kept, key=lambda title: list(SECTIONS).index(title[0]))
    return "\n".join(text for title in in_order if (text := _table_text(*title, kept[title])))


def _tables(study: Study) -> dict[tuple[str, str], Table]:
    """(section, "") → its keys, (section, NAME) → those of [section.NAME]; what has its default is not there."""
    tables: dict[tuple[str, str], Table] = {(section, ""): {} for section in SECTIONS}
    for section, keys in SECTIONS.items():
        for key, known in keys.items():
            values = study.axes[f"{section}.{key}"]
            if values != (known.default,) and not (study.of_collectives and key.startswith("batch_")):
                tables[section, ""][key] = values
    for section, owned in (
        ("framework", study.knobs),
        ("workload", study.model_options),
        ("cluster", study.site_options),
    ):
        for owner, table in owned.items():
            tables[section, owner] = dict(table)
    for model, own in study.of_models.items():
        tables.setdefault(("workload", model), {}).update({key.partition(".")[2]: own[key] for key in own})
    for key, chosen in zip(_OF_FRAMEWORKS, (study.interpreters, study.environments), strict=True):
        for framework, value in chosen.items():
            if key not in tables["framework", ""]:
                tables.setdefault(("framework", framework), {})[key] = (value,)
    return tables


def _names(tables: Mapping[tuple[str, str], Table], section: str) -> tuple[Any, ...]:
    """Frameworks, models or sites of the study."""
    key = _NAMED_BY[section]
    return tables[section, ""].get(key, (SECTIONS[section][key].default,))


def _table_text(section: str, owner: str, table: Table) -> str:
    """One table of the file; "" where nothing stands in it."""
    known = {} if owner else SECTIONS[section]
    lines = [
        f"{_key(key)} = {_values(values, _UNITS.get(key, ''))}"
        for key, values in table.items()
        if values and not (key in known and values == (known[key].default,))
    ]
    title = f"{section}.{_key(owner)}" if owner else section
    return "\n".join([f"[{title}]", *lines, ""]) if lines else ""


def _key(name: str) -> str:
    return name if _BARE.match(name) else json.dumps(name)


def _values(values: tuple[Any, ...], unit: str) -> str:
    written = [_value(value, unit) for value in values]
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"


def _value(value: Any, unit: str = "") -> str:
    if isinstance(value, Network):
        return _network(value)
    if isinstance(value, Repeats):
        return _repeats(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())} }}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_value, value))}]"
    if unit and isinstance(value, (int, float)):
        return json.dumps(f"{value!r}{unit}")
    return repr(value) if isinstance(value, (int, float)) else json.dumps(value, ensure_ascii=False)


def _network(network: Network) -> str:
    """By its name where it has one: what a trial is called depends on that."""
    if network.preset in NETWORKS:
        return json.dumps(network.preset)
    parts = {
        "bandwidth": (network.bandwidth_bytes_per_s, "B/s"),
        "latency": (network.latency_s, "s"),
        "jitter": (network.jitter_s, "s"),
    }
    told = [f"{key} = {_value(value, unit)}" for key, (value, unit) in parts.items() if value is not None]
    return f"{{ {', '.join(told)} }}"


def _repeats(repeats: Repeats) -> str:
    if repeats.until is None:
        return str(repeats.minimum)
    # Twelve digits: a percentage times 100 is not always the number that was written.
    return f'{{ min = {repeats.minimum}, max = {repeats.maximum}, until = "{repeats.until * 100:.12g}%" }}'
