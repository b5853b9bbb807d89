"""Turns words, lists, tables and figures into HTML. All foreign text is escaped here and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from paceline.report.figures.figure import Figure
from paceline.report.sheet import Cell, Field, Line, Sheet

OPEN_FIGURES = 4
"""The number of figures per section that are shown at once; the others are folded."""


def tag(name: str, *inside: str, **attributes: str | None) -> str:
    """An element around markup; attributes with "_" for "-", `kind` for the class. What is None is left out."""
    named = {{"kind": "class"}.get(key, key.replace("_", "-")): value for key, value in attributes.items()}
    written = "".join(f' {key}="{escape(value)}"' for key, value in named.items() if value is not None)
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def say(words: str) -> str:
    """Words as they are."""
    return escape(words)


def paragraph(words: str, kind: str | None = None) -> str:
    return tag("p", say(words), kind=kind)


def listed(sentences: Iterable[str], kind: str | None = None) -> str:
    """One item a sentence; "" where there is none."""
    items = [tag("li", say(sentence)) for sentence in sentences]
    return tag("ul", *items, kind=kind) if items else ""


def code(words: str) -> str:
    return tag("code", say(words))


def block(words: str) -> str:
    """Lines to copy."""
    return tag("pre", code(words), tabindex="0")


def folded(summary: str, *inside: str, kind: str | None = None) -> str:
    """Fold markup behind a summary line that opens it."""
    return tag("details", tag("summary", say(summary)), *inside, kind=kind)


def table(sheet: Sheet) -> str:
    """A table in a box of its own, which scrolls where the page is too narrow."""
    header = tag("tr", *(tag("th", say(field.header), scope="col") for field in sheet.fields))
    rows = [_row(line, sheet.fields) for line in sheet.lines]
    return _boxed(sheet.caption, tag("thead", header), tag("tbody", *rows))


def _boxed(caption: str, *inside: str, kind: str | None = None) -> str:
    """Its caption stands above the box: it would scroll away inside."""
    drawn = tag("table", *inside, aria_label=caption, kind=kind)
    box = tag("div", drawn, kind="scroll", role="region", aria_label=caption, tabindex="0")
    return paragraph(caption, "about") + box


def _row(line: Line, fields: Sequence[Field]) -> str:
    first, *others = zip(fields, line.cells, strict=True)
    name = tag("th", say(first[1].text), scope="row")
    return tag("tr", name, *(_cell(line.key, field, cell) for field, cell in others))


def _cell(key: str, field: Field, cell: Cell) -> str:
    """A number carries all of its digits, so that a page can be held against the records."""
    if cell.value is None:
        return tag("td", say(cell.text))
    bounds = {"data_low": cell.low, "data_high": cell.high, "data_level": cell.level}
    shown, gap, interval = cell.text.partition(" (") if cell.low is not None else (cell.text, "", "")
    below = [" ", tag("span", say(f"({interval}"), kind="ends")] if gap else []
    return tag(
        "td",
        say(shown),
        *below,
        kind="number",
        data_row=key,
        data_field=field.name,
        data_value=repr(cell.value),
        **{name: repr(bound) for name, bound in bounds.items() if bound is not None},
    )


def facts(pairs: Mapping[str, str], caption: str) -> str:
    """Names and values as a table."""
    rows = [tag("tr", tag("th", say(name), scope="row"), tag("td", say(value))) for name, value in pairs.items()]
    return _boxed(caption, tag("tbody", *rows), kind="facts")


def figure(drawn: Figure, level: int = 3) -> str:
    """A picture with its title, how to read it, its table and its downloads."""
    buttons = [
        tag("button", say(form.upper()), type="button", data_form=form, aria_label=f"{form.upper()} of {drawn.name}")
        for form in ("csv", "svg", "png")
    ]
    return tag(
        "figure",
        tag(f"h{level}", say(drawn.title)),
        tag("div", drawn.svg, kind="scroll picture", role="region", aria_label=drawn.title, tabindex="0"),
        tag("figcaption", say(drawn.caption)) if drawn.caption else "",
        # Without a script there is nothing to press, and the table is there all the same.
        tag("div", tag("span", say("download"), aria_hidden="true"), *buttons, kind="tools", hidden=""),
        folded("table", table(drawn.sheet)),
        id=drawn.name,
    )


def figures(many: Sequence[Figure]) -> str:
    """All figures of a section, the later ones folded away."""
    shown, rest = many[:OPEN_FIGURES], many[OPEN_FIGURES:]
    more = [folded(f"{len(rest)} more", *map(figure, rest), kind="more")] if rest else []
    return "".join([*map(figure, shown), *more])


def downloads(many: Iterable[Figure]) -> str:
    """What the script needs to hand out: the CSV of each figure, where no name can end the element."""
    data = json.dumps({drawn.name: drawn.csv() for drawn in many}).replace("<", "\\u003c")
    return f'<script type="application/json" id="data">{data}</script>'
