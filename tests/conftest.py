"""Its place puts `tests/` on the path, so that tests of every stage share builders such as `records`."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Hypothesis gives an example 200 ms by default; on a busy machine an innocent one takes longer, and a test fails that
# was right. Nothing here may depend on how fast the machine is.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

STRICT = os.environ.get("PACELINE_STRICT") == "1"
"""Whether a skip is a failure, as in CI: the targets install what the tests need, so what is missing there is a defect."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    report = yield
    if STRICT and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"PACELINE_STRICT=1, and this test did not run: {reason}"
    return report
