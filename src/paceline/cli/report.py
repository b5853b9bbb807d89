"""`paceline report STUDY`: the answer, the evidence, how to repeat it: as text, HTML, Markdown, LaTeX and SVG."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.cli.compare import add_comparison_flags, make_comparison
from paceline.cli.output import WIDTH, add_common, command, say, show, width
from paceline.errors import PacelineError, StoreError
from paceline.folders import store_folder
from paceline.record import MEASUREMENT, Record
from paceline.record.export import write_text
from paceline.spec import Study, load_study
from paceline.workbench import Workbench

if TYPE_CHECKING:
    from paceline.compare import Collectives, Comparison
    from paceline.explain.explanation import Explanation
    from paceline.model.forecast.predict import Prediction
    from paceline.model.foreign.traces import Span
    from paceline.recommend.recommendation import Advice
    from paceline.record.usage import Usage
    from paceline.report.page import ReportData

MOST_SPANS = 6000
"""Of all timelines of a page: with thousands of ranks one is enough."""
FILES = ("html", "markdown", "latex", "svg")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("report", help="the answer with its evidence: text, HTML, Markdown, LaTeX, SVG")
    parser.add_argument("study", help="study file (TOML)")
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page")
    parser.add_argument("--markdown", metavar="FILE", help="write Markdown, for a pull request")
    parser.add_argument(
        "--latex", metavar="FILE", help="write a LaTeX fragment with the scaling tables, for a proposal"
    )
    parser.add_argument("--svg", metavar="DIR", help="write every figure as a picture of its own")
    parser.add_argument("--output", metavar="FILE", help="write the text to a file instead of stdout")
    add_comparison_flags(parser)
    add_common(parser)
    parser.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    study = load_study(args.study)
    found = make_comparison(args)
    records = Workbench(study, store_folder(args.store)).records()
    files = any(getattr(args, name) for name in FILES)
    if files:
        data = gather(args, study, found, records)
        _write(args, data)
        if not args.json and not args.output:
            show(_in_short(data, args.html))
    if args.json or args.output or not files:
        text = _document(args, study, found, records) if args.json else _text(args, study, found, records)
        if args.output:
            write_text(text, Path(args.output))
            say(f"written: {args.output}")
        else:
            show(text.rstrip("\n"))
    say(f"next: {command(args, 'export', args.study, '--format csv')}")
    return 0


def gather(
    args: argparse.Namespace, study: Study, found: Comparison | Collectives, records: Sequence[Record]
) -> ReportData:
    """Everything that a page shows, from all stages."""
    from paceline.report.page import ReportData, Source

    rows = _last_runs(found, records)
    explanations = _explanations(args, study, found)
    return ReportData(
        study=study.name,
        question=study.question,
        results=found,
        source=Source(
            runs=len(records),
            began=min(record.started for record in records),
            ended=max(record.started + record.elapsed_s for record in records),
            versions=tuple(dict.fromkeys(record.paceline for record in records)),
        ),
        curves=_curves(args, study, found, records),
        explanations=explanations,
        advice=_advice(args, study, found, explanations),
        timelines=_timelines(rows),
        resources=_resources(rows),
        machines=_machines(records),
        environments=_environments(records),
        command=command(args, "run", args.study, "--again"),
        commands={
            "run": command(args, "run", args.study),
            "calibrate": command(args, "calibrate", args.study),
            "check": command(args, "check", "fairness", args.study),
        },
    )


def _explanations(args: argparse.Namespace, study: Study, found: Comparison | Collectives) -> Sequence[Explanation]:
    from paceline.compare import Comparison
    from paceline.explainbench import explain_study
    from paceline.report.shorten import explained

    if not isinstance(found, Comparison):
        return ()
    bench = Workbench(study, store_folder(args.store))
    return explain_study(bench, {row.trial: row.label for row in found.rows}, explained(found))


def _advice(
    args: argparse.Namespace, study: Study, found: Comparison | Collectives, explanations: Sequence[Explanation]
) -> Advice | None:
    """For the plainest goal; None where nothing can be recommended, which `recommend` itself says why."""
    from paceline.advicebench import recommend
    from paceline.compare import Comparison
    from paceline.recommend.objective import Prices, wish_for

    if not isinstance(found, Comparison):
        return None
    try:
        wish = wish_for("throughput", Prices(epoch=None, price=None, power=None), "")
        findings = {one.trial: one.findings for one in explanations}
        return recommend(Workbench(study, store_folder(args.store)), wish, findings).advice
    except PacelineError:
        return None


def _in_short(data: ReportData, page: str | None) -> str:
    """The answer, the recommendation and where the page is, for somebody who asked for files only."""
    from paceline.report.lists import paragraph
    from paceline.report.text import results_answer

    said = [f"Answer: {results_answer(data.results)}"]
    said += [f"Recommendation: {data.advice.sentence}"] if data.advice else []
    said += [f"Report: {page}"] if page else []
    return "\n".join(paragraph(one, width()) for one in said)


def _machines(records: Sequence[Record]) -> list[dict[str, Any]]:
    return list({record.machine["id"]: dict(record.machine) for record in records}.values())


def _environments(records: Sequence[Record]) -> list[dict[str, Any]]:
    return list({record.environment.get("name", "?"): dict(record.environment) for record in records}.values())


def _text(args: argparse.Namespace, study: Study, found: Comparison | Collectives, records: Sequence[Record]) -> str:
    from paceline.report.text import report

    return report(
        study=study.name,
        question=study.question,
        results=found,
        machines=_machines(records),
        environments=_environments(records),
        command=command(args, "run", args.study, "--again"),
        width=WIDTH if args.output else width(),
    )


def _document(
    args: argparse.Namespace, study: Study, found: Comparison | Collectives, records: Sequence[Record]
) -> str:
    from paceline.compare import Comparison
    from paceline.report.text import results_answer

    document = {
        "study": study.name,
        "question": study.question,
        "answer": results_answer(found),
        "comparison" if isinstance(found, Comparison) else "collectives": found.to_json(),
        "machines": _machines(records),
        "environments": _environments(records),
        "repeat_with": command(args, "run", args.study, "--again"),
    }
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _write(args: argparse.Namespace, data: ReportData) -> None:
    """The files that were asked for; what none of them needs is not loaded."""
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
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror}", hint="name another folder: --svg DIR") from None
        for figure in gallery(data).all():
            _save(figure.svg, str(folder / f"{figure.name}.svg"))


def _save(text: str, file: str) -> None:
    write_text(text, Path(file))
    say(f"written: {file}")


def _curves(
    args: argparse.Namespace, study: Study, found: Comparison | Collectives, records: Sequence[Record]
) -> dict[str, list[Prediction]]:
    """What kept calibrations say; {} where there is none."""
    from paceline.compare import Comparison
    from paceline.model.fitting.kept import calibrations_path, kept_calibrations

    folder = store_folder(args.store)
    if not isinstance(found, Comparison) or not calibrations_path(folder, study.name).exists():
        return {}
    from paceline.modelbench import curves

    return curves(found, [record.trial for record in records], kept_calibrations(folder, study.name))


def _last_runs(found: Comparison | Collectives, records: Sequence[Record]) -> dict[str, Record]:
    """Key of a row that is shown in detail → its last good run."""
    from paceline.compare import Comparison
    from paceline.compare.runs import fingerprint
    from paceline.record.summary import summarize
    from paceline.report.shorten import in_detail

    if not isinstance(found, Comparison):
        return {}
    runs: dict[str, Record] = {}
    for row in in_detail(found):
        mine = [
            record
            for record in records
            if record.trial.id == row.trial
            and record.ok
            and record.kind == MEASUREMENT
            and (record.machine.get("id"), fingerprint(record)) == (row.machine, row.fingerprint)
            and summarize(record) is not None
        ]
        if mine:
            runs[row.key] = max(mine, key=lambda record: record.repeat)
    return runs


def _timelines(runs: dict[str, Record]) -> dict[str, list[Span]]:
    from paceline.model.foreign.measured_step import measured_spans

    found: dict[str, list[Span]] = {}
    for key, record in runs.items():
        spans = measured_spans(record)
        if not found or sum(map(len, found.values())) + len(spans) <= MOST_SPANS:
            found[key] = spans
    return found


def _resources(runs: dict[str, Record]) -> dict[str, list[Usage]]:
    from paceline.record.usage import usage_of

    return {key: used for key, record in runs.items() if (used := usage_of(record))}
