"""A report as one HTML file that needs nothing else: works from disk, in light and dark, in print and without colour.

The page asks nobody for anything, and its own policy would refuse it: only the script and the style that are in it may
run. What has no data is left out with a line that says why and what to type.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib.resources import files

from paceline.compare import Comparison
from paceline.report.doubts import doubts
from paceline.report.fairness import differences, proof_sentences
from paceline.report.figures.contest import HOW_TO_READ
from paceline.report.findings_html import findings
from paceline.report.gallery import Gallery, gallery
from paceline.report.headline import headline_of
from paceline.report.lists import together
from paceline.report.markup import block, code, downloads, facts, figures, folded, listed, paragraph, say, table, tag
from paceline.report.names import capital
from paceline.report.page import ReportData, Source
from paceline.report.palette import style
from paceline.report.sentences import verdict_sentences, which_time
from paceline.report.sheets import fairness_sheet, measurement_sheet, verdict_sheet
from paceline.report.shorten import shortened
from paceline.report.text import fact_texts

LONG = 300
"""Letters of a fact that is shown at once; a longer one (a list of packages) is folded away."""
COLOPHON = (
    "This file needs no network and loads nothing from elsewhere. Every number carries all of its digits in the "
    "attribute data-value."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A part of the page under a heading of its own."""

    name: str
    """The name of its anchor on the page."""
    heading: str
    body: str = ""
    absent: str = ""
    """Why there is no such part, where there is none."""
    command: str = ""
    """What to type to get it."""


def page(data: ReportData) -> str:
    """The whole file; of a very large study the tables and figures show some rows, the answer is that of all."""
    shown = replace(data, results=shortened(data.results)) if isinstance(data.results, Comparison) else data
    drawn = gallery(shown)
    parts = sections(shown, drawn, verdicts=_verdicts(data))
    title = f"{data.study} · Paceline report"
    css, script = style() + _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(css)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{say(policy)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        tag("title", say(title)),
        f"<style>{css}</style>",
    ]
    main = tag("main", _header(data), _contents(parts), *map(_section, parts), tag("footer", paragraph(COLOPHON)))
    body = tag("body", main, downloads(drawn.all()), f"<script>{script}</script>")
    return f'<!DOCTYPE html>\n<html lang="en">\n{tag("head", *head)}\n{body}\n</html>\n'


def sections(data: ReportData, drawn: Gallery, *, verdicts: str) -> list[Section]:
    """All parts, in order, those without data among them."""
    return [
        _results(data, drawn, verdicts),
        _scaling(data, drawn),
        _pictures(data, drawn, "phases"),
        _pictures(data, drawn, "timelines"),
        _bottlenecks(data, drawn),
        _pictures(data, drawn, "resources"),
        _fairness(data),
        _warnings(data),
        _machines(data),
        Section(name="repeat", heading="Repeat it", body=block(data.command)),
    ]


def _asset(name: str) -> str:
    return files("paceline.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The digest by which a content security policy allows exactly this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _header(data: ReportData) -> str:
    headline = headline_of(data.results)
    first, *others = map(together, headline.answer)
    parts = [paragraph(f"Paceline report · {data.study}", "study"), tag("h1", say(first))]
    parts += [paragraph(sentence, "lead") for sentence in others]
    parts += _marked("Caution", " ".join(headline.caution), "caution")
    parts += _marked("Asked", data.question, "question")
    if data.advice is not None:
        parts += _marked("Recommended", data.advice.sentence, "advice")
    if data.source is not None:
        which = capital(which_time(data.results))
        parts.append(paragraph(f"{_provenance(data.source)}{f' {which}.' if which else ''}", "source"))
    return tag("header", *parts)


def _marked(word: str, text: str, kind: str) -> list[str]:
    """A paragraph that begins with what it is; [] where there is nothing to say."""
    return [tag("p", tag("b", say(f"{word}: ")), say(together(text)), kind=kind)] if text else []


def _provenance(source: Source) -> str:
    began, ended = (datetime.fromtimestamp(t, timezone.utc).strftime("%Y-%m-%d") for t in (source.began, source.ended))
    when = began if began == ended else f"{began} to {ended}"
    count = f"{source.runs} run{'s' if source.runs != 1 else ''}"
    return f"{count}, {when} (UTC), by Paceline {', '.join(source.versions)}."


def _contents(parts: Sequence[Section]) -> str:
    links = [tag("li", tag("a", say(part.heading), href=f"#{part.name}")) for part in parts if not part.absent]
    return tag("nav", tag("ul", *links), aria_label="Contents")


def _section(part: Section) -> str:
    if part.absent:
        typed = f" Type: {code(part.command)}" if part.command else ""
        return tag(
            "p", tag("b", say(part.heading)), say(f" left out: {part.absent}"), typed, kind="absent", id=part.name
        )
    heading = tag("h2", say(part.heading), id=f"{part.name}-heading")
    return tag("section", heading, part.body, id=part.name, aria_labelledby=f"{part.name}-heading")


def _verdicts(data: ReportData) -> str:
    """The verdicts on all pairs of rows."""
    comparison = data.comparison
    if comparison is None:
        return ""
    labels = {row.key: row.label for row in comparison.rows}
    return listed(verdict_sentences(comparison, labels), "verdicts") or paragraph(
        "No two trials answer the same question, so none is ranked."
    )


def _results(data: ReportData, drawn: Gallery, verdicts: str) -> Section:
    comparison = data.comparison
    name, heading = "comparison", "Comparison"
    if comparison is None:
        heading = "Collectives"
    if not drawn.results:
        why = "no run was completed."
        return Section(name=name, heading=heading, absent=why, command=data.commands.get("run", ""))
    body = figures(drawn.results)
    if comparison is not None:
        body = paragraph(HOW_TO_READ, "about") + body
        pairs = folded("every pair", table(verdict_sheet(comparison))) if comparison.verdicts else ""
        body = "".join(
            [verdicts, body, tag("h3", say("Everything measured")), table(measurement_sheet(comparison)), pairs]
        )
    return Section(name=name, heading=heading, body=body)


ABSENT = {
    "scaling": "no two trials differ in the number of workers alone; give cluster.hosts or cluster.workers_per_host "
    "two values.",
    "phases": "no trial reports the phases of its step.",
    "timelines": "no run has measured training steps.",
    "resources": "no run was long enough for three samples of the meter (two per second); raise measure.steps.",
}
"""Section → why it is not there, in words."""
HEADINGS = {
    "scaling": "Scaling",
    "phases": "Where the step time goes",
    "timelines": "One step on all ranks",
    "resources": "CPU and memory",
}


def _pictures(data: ReportData, drawn: Gallery, name: str) -> Section:
    """A section of figures alone."""
    shown = getattr(drawn, name)
    if shown:
        return Section(name=name, heading=HEADINGS[name], body=figures(shown))
    why = "a study of collectives trains nothing." if data.comparison is None else ABSENT[name]
    command = "" if data.comparison is None else data.commands.get("run", "")
    return Section(name=name, heading=HEADINGS[name], absent=why, command=command)


def _scaling(data: ReportData, drawn: Gallery) -> Section:
    part = _pictures(data, drawn, "scaling")
    if part.absent or data.curves:
        return part
    typed = data.commands.get("calibrate", "")
    missing = tag(
        "p", say("Predictions left out: no family of this study is calibrated. Type: "), code(typed), kind="absent"
    )
    return Section(name=part.name, heading=part.heading, body=part.body + missing)


def _bottlenecks(data: ReportData, drawn: Gallery) -> Section:
    name, heading = "bottlenecks", "What holds it back"
    if data.explanations:
        return Section(name=name, heading=heading, body=findings(data.explanations, drawn.ladders))
    if data.comparison is None:
        return Section(name=name, heading=heading, absent="a study of collectives trains nothing.")
    why = "explanations need a calibrated model."
    return Section(name=name, heading=heading, absent=why, command=data.commands.get("calibrate", ""))


def _fairness(data: ReportData) -> Section:
    name, heading = "fairness", "Fairness"
    comparison = data.comparison
    if comparison is None:
        return Section(
            name=name, heading=heading, absent="a study of collectives trains nothing that could be proved equal."
        )
    proofs = comparison.proofs
    if not proofs:
        several = len({row.framework for row in comparison.rows}) > 1
        why = "no proof is recorded." if several else "one framework is only compared with itself."
        return Section(name=name, heading=heading, absent=why, command=data.commands.get("check", ""))
    differing = differences(proofs)
    body = [
        listed(proof_sentences(proofs)),
        tag("h3", say("What still differs")),
        listed(differing) or paragraph("Nothing that the frameworks report."),
        folded("every distance", table(fairness_sheet(proofs))),
    ]
    return Section(name=name, heading=heading, body="".join(body))


def _warnings(data: ReportData) -> Section:
    failed, warned, noted = doubts(data.results)
    body = [
        tag("ul", *(tag("li", *_doubt(sentence)) for sentence in warned), kind="doubts") if warned else "",
        *([tag("h3", say("Not ok")), listed(failed)] if failed else []),
        *([tag("h3", say("Notes")), listed(noted)] if noted else []),
    ]
    if not any((failed, warned, noted)):
        return Section(name="warnings", heading="Warnings", absent="there are none.")
    return Section(name="warnings", heading="Warnings", body="".join(body))


def _doubt(sentence: str) -> tuple[str, str]:
    """A warning begins with its code."""
    word, colon, rest = sentence.partition(":")
    return tag("b", say(word + colon)), say(rest)


def _machines(data: ReportData) -> Section:
    body = []
    for caption, entries in (("Machine", data.machines), ("Environment", data.environments)):
        for entry in entries:
            shown = fact_texts(entry)
            name = str(entry.get("id") or entry.get("name") or "")
            short = {key: value for key, value in shown.items() if len(value) <= LONG}
            body.append(facts(short, f"{caption} {name}".strip()))
            body += [
                folded(f"{key} of {name}", block("\n".join(value.split(", "))))
                for key, value in shown.items()
                if key not in short
            ]
    return Section(name="machine", heading="Machine and environment", body="".join(body))
