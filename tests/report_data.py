"""Builds everything that a report shows, for tests, from records that never happened."""

from __future__ import annotations

from explained import make_advice, make_explanation
from paceline.compare import compare
from paceline.model.foreign.measured_step import measured_spans
from paceline.record.usage import Series, UsageCurves
from paceline.report.page import ReportData, Source
from records import MACHINE, make_record

HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\"&|_$%#{}\\"
"""A name that would like to be more than a name."""
STEPS = {1: 0.05, 2: 0.0625, 4: 0.1}
COMMANDS = {
    "run": "paceline run s.toml",
    "calibrate": "paceline calibrate s.toml",
    "check": "paceline check fairness s.toml",
}


def make_records(**changes):
    """Two knobs, three sizes, three runs each."""
    return [
        make_record(knobs={"k": k}, workers=n, step_s=s * (1 + 0.2 * k) * d, repeat=r, **changes)
        for k in (0, 1)
        for n, s in STEPS.items()
        for r, d in enumerate((1.0, 1.01, 0.98))
    ]


def make_report(*, name="study", records=None, **changes):
    """A report with every section; any field of ReportData replaces what was made."""
    records = make_records() if records is None else records
    comparison = compare(records)
    key = comparison.rows[-1].key
    times = (0.5, 1.0, 1.5)
    used = UsageCurves(
        process="worker0",
        cores=Series(t_s=times, values=(0.5, 1.0, 0.9)),
        mean_cores=0.8,
        peak_cores=1.0,
        rss_bytes=Series(t_s=times, values=(1e8, 2e8, 2e8)),
        peak_rss_bytes=2e8,
    )
    fields = {
        "study": name,
        "question": "How well does it scale?",
        "results": comparison,
        "source": Source(runs=len(records), began=1.7e9, ended=1.7e9 + 86400, versions=("0.1.0",)),
        "explanations": (make_explanation(comparison.rows[-1].trial, comparison.rows[-1].label),),
        "advice": make_advice(),
        "timelines": {key: measured_spans(records[-1])},
        "resources": {key: [used]},
        "machines": [MACHINE],
        "environments": [{"name": "torch", "packages": {f"package{n}": "1.0" for n in range(60)}}],
        "command": "paceline run s.toml --again",
        "commands": COMMANDS,
    }
    return ReportData(**(fields | changes))
