"""In CI a test that did not run has failed (`conftest.STRICT`)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
SKIPPING = """
import pytest

@pytest.mark.skipif(True, reason="no such program")
def test_marked(): ...

def test_late():
    pytest.skip("no such file")

@pytest.mark.xfail(strict=True, run=False, reason="never")
def test_gap(): ...
"""


@pytest.mark.parametrize(("strict", "counts"), [("1", "1 failed, 1 xfailed, 1 error"), ("", "2 skipped, 1 xfailed")])
def test_a_skip_is_a_failure_where_it_is_asked_for(tmp_path, strict, counts):
    (tmp_path / "test_skipping.py").write_text(SKIPPING)
    options = ["-q", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "conftest", "-p", "no:cacheprovider"]
    env = os.environ | {"PACELINE_STRICT": strict, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)], env=env, capture_output=True, text=True, check=False
    )

    assert counts in done.stdout, done.stdout
