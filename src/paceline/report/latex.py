"""A report as a LaTeX fragment for a paper or a proposal for compute time: scaling tables, and where the plots are.

Plain `tabular` and ASCII: it goes into any document, with any engine and without packages.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.compare import Collectives
from paceline.report.figures.collectives import collective_sheet
from paceline.report.figures.figure import Figure
from paceline.report.figures.scaling import scaling_figures
from paceline.report.headline import headline_of
from paceline.report.page import ReportData
from paceline.report.sheet import Sheet
from paceline.report.sheets import measurement_sheet

SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "÷": r"$/$",
    "–": "--",
    "—": "---",
    "−": "$-$",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\to$",
    "µ": r"$\mu$",
    "α": r"$\alpha$",
    "…": r"\ldots{}",
}
"""What LaTeX would take for its own, or has no letter for."""
UNKNOWN = "?"
"""Replaces letters beyond ASCII that SIGNS does not contain, because a fragment must compile everywhere."""


def latex(data: ReportData, pictures: str | None = None) -> str:
    """The whole fragment.

    Args:
        data: what to show.
        pictures: the folder of the plots, where they were written.
    """
    head = [
        f"% {ascii_only(data.study)}: written by paceline report; \\input this file",
        f"% again: {ascii_only(data.command)}",
    ]
    results = data.results
    if isinstance(results, Collectives):
        sheet = collective_sheet([measured for measured in results.tables if measured.sizes])
        body = [table(sheet, f"{data.study}: {sheet.caption}", "collectives")]
    elif drawn := scaling_figures(results, data.curves):
        body = [part for figure in drawn for part in _scaling(figure, data, pictures)]
    else:
        sheet = measurement_sheet(results)
        body = [table(sheet, f"{data.study}: {sheet.caption}", "measured")]
    return "\n".join([*head, paragraph(data.question), paragraph(headline_of(results).text), *body, ""])


def escaped(words: str) -> str:
    """Words as they are."""
    return "".join(SIGNS.get(sign, sign if sign.isascii() else UNKNOWN) for sign in " ".join(words.split()))


def ascii_only(words: str) -> str:
    """Words of a comment."""
    return " ".join(words.split()).encode("ascii", "replace").decode()


def paragraph(words: str) -> str:
    return f"\\noindent {escaped(words)}\\par" if words else "%"


def table(sheet: Sheet, caption: str, label: str) -> str:
    """A table that floats; numbers stand at the right."""
    numeric = [any(line.cells[at].value is not None for line in sheet.lines) for at in range(len(sheet.fields))]
    rows = [
        _row([field.header for field in sheet.fields]),
        "\\hline",
        *(_row([c.text for c in line.cells]) for line in sheet.lines),
    ]
    return "\n".join(
        [
            "\\begin{table}[ht]",
            "\\centering\\small",
            f"\\caption{{{escaped(caption)}}}",
            f"\\label{{tab:{label}}}",
            f"\\begin{{tabular}}{{{''.join('r' if right else 'l' for right in numeric)}}}",
            "\\hline",
            *rows,
            "\\hline",
            "\\end{tabular}",
            "\\end{table}",
        ]
    )


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(map(escaped, cells))} \\\\"


def _scaling(figure: Figure, data: ReportData, pictures: str | None) -> list[str]:
    where = f"{pictures}/{figure.name}.svg" if pictures else f"{figure.name}.svg, written by: paceline report --svg DIR"
    note = f"% plot: {ascii_only(where)} (to PDF: rsvg-convert -f pdf, or inkscape --export-type=pdf)"
    caption = f"{figure.title} ({data.study}). {figure.sheet.caption}."
    return [note, table(figure.sheet, caption, figure.name)]
