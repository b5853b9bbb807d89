"""Write a study as a TOML file that `load_study` reads back to the same trials, with some of its keys changed.

This module owns the notation of values in a file. It knows no trial: the caller gives the keys and values of a trial.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from paceline.spec.catalog import SECTIONS
from paceline.spec.load import OF_A_MODEL
from paceline.spec.networks import NETWORKS
from paceline.spec.study import Network, Repeats, Study

_BARE = re.compile(r"^[A-Za-z0-9_-]+$")
_OF_FRAMEWORKS = ("interpreter", "environment")
"""Keys that are in [framework] if there is only one framework, and in [framework.NAME] if there are several."""
_UNITS = {"time_limit": "s", "memory_limit": "B"}
"""Keys that are read with a unit → the unit of the stored number."""
_NAMED_BY = {"framework": "name", "workload": "model", "cluster": "site"}
"""Sections with further tables → the key whose values name these tables."""

Table = dict[str, tuple[object, ...]]


def study_text(study: Study, *, name: str, question: str, axes: Mapping[str, object]) -> str:
    """The study under another name, with other values of some keys.

    Args:
        study: the study to write.
        name: the name of the written study.
        question: the question of the written study.
        axes: "section.key", or "section.NAME.key" for a key in [section.NAME] → its value, or several as a tuple or a
            list. None: the key is left out, so that the default applies. A key that is set here applies to every model:
            values that the study gives to single models are dropped, and so are tables of frameworks, models and sites
            that the written study no longer has.
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
        tables.setdefault((section, owner), {})[key] = tuple(item for item in values if item is not None)
    tables["study", ""] = {"name": (name,), "question": (question,) if question else ()}
    kept = {title: table for title, table in tables.items() if not title[1] or title[1] in _names(tables, title[0])}
    in_order = sorted(kept, key=lambda title: list(SECTIONS).index(title[0]))
    return "\n".join(text for title in in_order if (text := _table_text(*title, kept[title])))


def _tables(study: Study) -> dict[tuple[str, str], Table]:
    """(section, "") → its keys, (section, NAME) → the keys of [section.NAME]; keys with their default are left out."""
    tables: dict[tuple[str, str], Table] = {(section, ""): {} for section in SECTIONS}
    for section, keys in SECTIONS.items():
        for key, definition in keys.items():
            values = study.axes[f"{section}.{key}"]
            if values != (definition.default,) and not (study.of_collectives and key.startswith("batch_")):
                tables[section, ""][key] = values
    for section, owned in (
        ("framework", study.knobs),
        ("workload", study.model_options),
        ("cluster", study.site_options),
    ):
        for owner, table in owned.items():
            tables[section, owner] = dict(table)
    for model, axes in study.of_models.items():
        tables.setdefault(("workload", model), {}).update({key.partition(".")[2]: axes[key] for key in axes})
    for key, chosen in zip(_OF_FRAMEWORKS, (study.interpreters, study.environments), strict=True):
        for framework, value in chosen.items():
            if key not in tables["framework", ""]:
                tables.setdefault(("framework", framework), {})[key] = (value,)
    return tables


def _names(tables: Mapping[tuple[str, str], Table], section: str) -> tuple[object, ...]:
    """Frameworks, models or sites of the study."""
    key = _NAMED_BY[section]
    return tables[section, ""].get(key, (SECTIONS[section][key].default,))


def _table_text(section: str, owner: str, table: Table) -> str:
    """One table of the file; "" if it has no keys."""
    keys = {} if owner else SECTIONS[section]
    lines = [
        f"{_key(key)} = {_values(values, _UNITS.get(key, ''))}"
        for key, values in table.items()
        if values and not (key in keys and values == (keys[key].default,))
    ]
    title = f"{section}.{_key(owner)}" if owner else section
    return "\n".join([f"[{title}]", *lines, ""]) if lines else ""


def _key(name: str) -> str:
    return name if _BARE.match(name) else json.dumps(name)


def _values(values: tuple[object, ...], unit: str) -> str:
    written = [_value(value, unit) for value in values]
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"


def _value(value: object, unit: str = "") -> str:
    if isinstance(value, Network):
        return _network(value)
    if isinstance(value, Repeats):
        return _repeats(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(item)}' for key, item in value.items())} }}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_value, value))}]"
    if unit and isinstance(value, (int, float)):
        return json.dumps(f"{value!r}{unit}")
    return repr(value) if isinstance(value, (int, float)) else json.dumps(value, ensure_ascii=False)


def _network(network: Network) -> str:
    """A network is written by its name if it has one, because the ids of trials contain that name."""
    if network.preset in NETWORKS:
        return json.dumps(network.preset)
    parts = {
        "bandwidth": (network.bandwidth_bytes_per_s, "B/s"),
        "latency": (network.latency_s, "s"),
        "jitter": (network.jitter_s, "s"),
    }
    written = [f"{key} = {_value(value, unit)}" for key, (value, unit) in parts.items() if value is not None]
    return f"{{ {', '.join(written)} }}"


def _repeats(repeats: Repeats) -> str:
    if repeats.until is None:
        return str(repeats.minimum)
    # Twelve digits, because a fraction times 100 is not always exactly the percentage that was read.
    return f'{{ min = {repeats.minimum}, max = {repeats.maximum}, until = "{repeats.until * 100:.12g}%" }}'
