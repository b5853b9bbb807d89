"""The bottlenecks of each trial as HTML: the ladder, the findings with their numbers, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paceline.explain.explanation import Explanation
from paceline.explain.finding import Finding
from paceline.report import numbers
from paceline.report.figures.figure import Figure
from paceline.report.findings import evidence_line, further_sentences, number_text
from paceline.report.markup import OPEN_FIGURES, block, figure, folded, listed, paragraph, say, table, tag
from paceline.report.sheet import Cell, Line, Sheet, fields, number, word


def findings(explanations: Sequence[Explanation], ladders: Mapping[str, Figure]) -> str:
    """One part per trial, the later ones folded away; `ladders` by the trial that they are about."""
    parts = [_trial(explained, ladders.get(explained.trial)) for explained in explanations]
    shown, rest = parts[:OPEN_FIGURES], parts[OPEN_FIGURES:]
    return "".join([*shown, *([folded(f"{len(rest)} more trials", *rest, kind="more")] if rest else [])])


def _trial(explained: Explanation, ladder: Figure | None) -> str:
    kind = "simulated " if explained.simulated else ""
    return tag(
        "div",
        tag("h3", say(f"{explained.label}: a {kind}step of {numbers.step(explained.step_s)}")),
        *(_finding(finding) for finding in explained.findings),
        listed(further_sentences(explained)),
        figure(ladder, level=4) if ladder else "",
        folded("shares of the step", table(_shares(explained))),
        kind="trial",
    )


def _finding(finding: Finding) -> str:
    change = [tag("p", tag("b", say("Do: ")), say(finding.change.words))] if finding.change else []
    test = [folded("study that would confirm or refute it", block(finding.experiment))] if finding.experiment else []
    return tag(
        "article",
        paragraph(finding.sentence, "claim"),
        paragraph(evidence_line(finding), "evidence"),
        *change,
        folded("numbers behind it", table(_numbers(finding))),
        *test,
        kind="finding",
    )


def _numbers(finding: Finding) -> Sheet:
    return Sheet(
        caption=f"Runs behind it: {', '.join(finding.records)}",
        fields=fields(name="number", value="value", by="by"),
        lines=tuple(
            Line(
                key=finding.cause, cells=(word(figure.name), number(figure.value, number_text(figure)), word(figure.by))
            )
            for figure in finding.numbers
        ),
    )


def _shares(explained: Explanation) -> Sheet:
    return Sheet(
        caption="Parts of the step on its critical path",
        fields=fields(cause="cause", measured="simulated" if explained.simulated else "measured", modelled="modelled"),
        lines=tuple(
            Line(key=explained.trial, cells=(word(part.cause), _share(part.measured), _share(part.modelled)))
            for part in explained.shares
        ),
    )


def _share(part: float | None) -> Cell:
    return word(numbers.NOTHING) if part is None else number(part, numbers.share(part))
