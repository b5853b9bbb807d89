"""A report as Markdown for a pull request: the answer, the table, verdicts and findings; doubts folded away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from paceline.compare import Collectives
from paceline.explain.explanation import Explanation
from paceline.report.doubts import doubts
from paceline.report.fairness import fairness_sentences
from paceline.report.figures.collectives import collective_sheet
from paceline.report.findings import evidence_line
from paceline.report.headline import headline_of
from paceline.report.page import ReportData
from paceline.report.sentences import verdict_sentences
from paceline.report.sheet import Sheet
from paceline.report.sheets import measurement_sheet

SIGNS = re.compile(r"([\\`*|\[\]])")
"""What Markdown would take for its own."""


def markdown(data: ReportData) -> str:
    """The whole text."""
    headline = headline_of(data.results)
    first, *others = headline.answer
    blocks = [
        f"## {plain(data.study)}",
        f"**{plain(first)}**",
        plain(" ".join(others)),
        f"**Caution:** {plain(' '.join(headline.caution))}" if headline.caution else "",
        f"> {plain(data.question)}" if data.question else "",
        f"Recommended: {plain(data.advice.sentence)}" if data.advice else "",
        table(_measured(data)),
    ]
    if (comparison := data.comparison) is not None:
        labels = {row.key: row.label for row in comparison.rows}
        blocks += [
            _section("Verdicts", verdict_sentences(comparison, labels)),
            _section("Fairness", fairness_sentences(comparison.proofs)),
        ]
    blocks += [_findings(data.explanations), _doubts(data)]
    blocks.append(f"Repeat it: `{data.command}`" if data.command else "")
    return "\n\n".join(block for block in blocks if block) + "\n"


def plain(words: str) -> str:
    """Words as they are: neither markup nor markdown."""
    return SIGNS.sub(r"\\\1", escape(" ".join(words.split()), quote=False))


def table(sheet: Sheet) -> str:
    """A table; numbers stand at the right."""
    numeric = [any(line.cells[at].value is not None for line in sheet.lines) for at in range(len(sheet.fields))]
    rows = [
        [plain(field.header) for field in sheet.fields],
        ["--:" if right else "---" for right in numeric],
        *([plain(cell.text) for cell in line.cells] for line in sheet.lines),
    ]
    return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), "", f"{plain(sheet.caption)}."])


def _measured(data: ReportData) -> Sheet:
    results = data.results
    if isinstance(results, Collectives):
        return collective_sheet([measured for measured in results.tables if measured.sizes])
    return measurement_sheet(results)


def _section(heading: str, sentences: Iterable[str]) -> str:
    items = [f"- {plain(sentence)}" for sentence in sentences]
    return "\n".join([f"### {heading}", "", *items]) if items else ""


def _findings(explanations: Sequence[Explanation]) -> str:
    items = [
        f"- {plain(explained.label)}: **{plain(finding.sentence)}** {plain(evidence_line(finding))}"
        for explained in explanations
        for finding in explained.findings
    ]
    return "\n".join(["### What holds it back", "", *items]) if items else ""


def _doubts(data: ReportData) -> str:
    failed, warned, noted = doubts(data.results)
    items = [*(f"not ok: {sentence}" for sentence in failed), *warned, *noted]
    if not items:
        return ""
    lines = [f"- {plain(sentence)}" for sentence in items]
    return "\n".join([f"<details><summary>Warnings ({len(items)})</summary>", "", *lines, "", "</details>"])
