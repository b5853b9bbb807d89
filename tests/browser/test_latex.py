"""The LaTeX fragment of a report goes through pdflatex, with names that would break it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from paceline.report.latex import latex
from report_data import HOSTILE, make_records, make_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no pdflatex: make test-browser installs it"),
]


def test_fragment_compiles(tmp_path: Path) -> None:
    (tmp_path / "part.tex").write_text(latex(make_report(name=HOSTILE, records=make_records(model=HOSTILE))))
    (tmp_path / "whole.tex").write_text("\\documentclass{article}\\begin{document}\\input{part}\\end{document}")

    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "whole.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
