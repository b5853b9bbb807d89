"""`paceline report STUDY`: writes the answer with its evidence as text, HTML, Markdown, LaTeX and SVG."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.cli.compare import add_comparison_flags, next_words, recorded_snapshot
from paceline.cli.output import WIDTH, add_common, command, document, say, show, tell_outdated, width
from paceline.cli.subcommands import Subcommands
from paceline.errors import PacelineError
from paceline.record.export import make_folder, write_text
from paceline.report.gather import environments_of, last_runs, machines_of, resources_of, source_of, timelines_of

if TYPE_CHECKING:
    from paceline.recommend.recommendation import Advice
    from paceline.report.page import ReportData
    from paceline.snapshot import Snapshot

FILES = ("html", "markdown", "latex", "svg")
"""The flags that ask for files with figures, which need the results of all stages."""


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("report", help="the answer with its evidence: text, HTML, Markdown, LaTeX, SVG")
    parser.add_argument("study", help="study file (TOML)")
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page")
    parser.add_argument("--markdown", metavar="FILE", help="write Markdown, for a pull request")
    parser.add_argument(
        "--latex", metavar="FILE", help="write a LaTeX fragment with the scaling tables, for a proposal"
    )
    parser.add_argument("--svg", metavar="DIR", help="write each figure to an SVG file in this folder")
    parser.add_argument("--output", metavar="FILE", help="write the text to a file instead of stdout")
    add_comparison_flags(parser)
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    snapshot = recorded_snapshot(args)
    files = any(getattr(args, name) for name in FILES)
    if files:
        data = report_data(args, snapshot)
        _write(args, data)
        if not args.json and not args.output:
            show(_in_short(data, args.html))
    if args.json or args.output or not files:
        text = _document(args, snapshot) if args.json else _text(args, snapshot)
        if args.output:
            write_text(text, Path(args.output))
            say(f"written: {args.output}")
        else:
            show(text.rstrip("\n"))
    say(f"next: {command(args, *next_words(snapshot.results, 'export', args.study, '--format csv'))}")
    return 0


def report_data(args: argparse.Namespace, snapshot: Snapshot) -> ReportData:
    """Returns everything that a page shows, from all stages."""
    from paceline.report.page import ReportData

    measured = ReportData(
        study=snapshot.study.name,
        question=snapshot.study.question,
        results=snapshot.results,
        source=source_of(snapshot.records),
        machines=machines_of(snapshot.records),
        environments=environments_of(snapshot.records),
        command=command(args, "run", args.study, "--again"),
        commands={
            "run": command(args, "run", args.study),
            "calibrate": command(args, "calibrate", args.study),
            "check": command(args, "check", "fairness", args.study),
        },
    )
    if snapshot.study.of_collectives:
        return measured
    from paceline.report.outlook import curves
    from paceline.report.shorten import explained

    shown = explained(snapshot.comparison)
    runs = last_runs(snapshot.comparison, snapshot.records)
    tell_outdated(args, snapshot, args.study)
    return replace(
        measured,
        curves=curves(snapshot.comparison, [record.trial for record in snapshot.records], snapshot.calibrations),
        explanations=snapshot.explanations if shown is None else snapshot.explained(shown),
        advice=_advice(snapshot, shown),
        timelines=timelines_of(runs),
        resources=resources_of(runs),
    )


def _advice(snapshot: Snapshot, explained: Collection[str] | None) -> Advice | None:
    """Returns the recommendation for the highest throughput; None if there is none (`recommend` says why)."""
    from paceline.recommend.objective import Prices, wish_for

    try:
        wish = wish_for("throughput", Prices(epoch=None, price=None, power=None), "")
        return snapshot.advice(wish, explained)
    except PacelineError:
        return None


def _in_short(data: ReportData, page: str | None) -> str:
    """Returns the answer, the recommendation and the path of the page, for when only files were requested."""
    from paceline.report.lists import paragraph
    from paceline.report.text import results_answer

    sentences = [f"Answer: {results_answer(data.results)}"]
    sentences += [f"Recommendation: {data.advice.sentence}"] if data.advice else []
    sentences += [f"Report: {page}"] if page else []
    return "\n".join(paragraph(sentence, width()) for sentence in sentences)


def _text(args: argparse.Namespace, snapshot: Snapshot) -> str:
    from paceline.report.text import report

    return report(
        study=snapshot.study.name,
        question=snapshot.study.question,
        results=snapshot.results,
        machines=machines_of(snapshot.records),
        environments=environments_of(snapshot.records),
        command=command(args, "run", args.study, "--again"),
        width=WIDTH if args.output else width(),
        details=args.all,
    )


def _document(args: argparse.Namespace, snapshot: Snapshot) -> str:
    from paceline.report.text import results_answer

    fields = {
        "study": snapshot.study.name,
        "question": snapshot.study.question,
        "answer": results_answer(snapshot.results),
        "collectives" if snapshot.study.of_collectives else "comparison": snapshot.results.to_json(),
        "machines": machines_of(snapshot.records),
        "environments": environments_of(snapshot.records),
        "repeat_with": command(args, "run", args.study, "--again"),
    }
    return document(fields) + "\n"


def _write(args: argparse.Namespace, data: ReportData) -> None:
    """Writes the files that were asked for; modules that none of them needs are not loaded."""
    if args.html:
        from paceline.report.html import page

        _save(page(data), args.html)
    if args.markdown:
        from paceline.report.markdown import markdown

        _save(markdown(data), args.markdown)
    if args.latex:
        from paceline.report.latex import latex

        _save(latex(data, pictures=args.svg), args.latex)
    if args.svg:
        from paceline.report.gallery import gallery

        folder = Path(args.svg)
        make_folder(folder)
        for figure in gallery(data).all():
            _save(figure.svg, str(folder / f"{figure.name}.svg"))


def _save(text: str, file: str) -> None:
    write_text(text, Path(file))
    say(f"written: {file}")
