"""A wrong command line is answered in two lines, with the nearest word that would have been right."""

from __future__ import annotations

import pytest

from paceline.cli import main


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(list(words))
    told = capsys.readouterr().err
    assert "usage:" not in told
    assert told.count("\n") == 2, told
    return code, told


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["rnu", "s.toml"], "'run'"),
        (["recomend", "s.toml"], "'recommend'"),
        (["env", "biuld", "torch-cpu"], "'build'"),
        (["run", "s.toml", "--retry-faild"], "'--retry-failed'"),
        (["report", "s.toml", "--htlm=page.html"], "'--html'"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_typo_is_answered_with_the_nearest_word(
    capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    code, told = said(capsys, *words)

    assert code == 2
    assert f"hint:  did you mean {expected}?" in told


@pytest.mark.parametrize("words", [[], ["run"], ["run", "a.toml", "b.toml"], ["export", "--format", "xml"]], ids=str)
def test_other_slips_name_the_help(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    code, told = said(capsys, *words)

    assert code == 2
    assert "--help" in told


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--batch", "-2"),
        ("--batch", "0"),
        ("--batch-global", "0"),
        ("--workers-per-host", "0"),
        ("--epoch", "-1"),
        ("--price", "-3"),
        ("--price", "nan"),
        ("--power", "0"),
        ("--network", "0Gbit"),
        ("--network", "-1Gbit"),
        ("--memory", "0GB"),
        ("--workers", "0"),
        ("--workers", "1..99999999999999999999999999"),
        ("--network", "1e400Gbit"),
        ("--memory", "1e400GB"),
        ("--what-if", "bandwidth=xnan"),
        ("--what-if", "bandwidth=xinf"),
        ("--what-if", "compute=x1e-400"),
        ("--what-if", "bandwidth=0Gbit"),
        ("--what-if", "bucket=0MB"),
        ("--what-if", "latency=-1us"),
    ],
    ids=str,
)
def test_quantities_that_no_machine_has_are_refused(capsys: pytest.CaptureFixture[str], flag: str, value: str) -> None:
    code, told = said(capsys, "predict", "--device", "V100-SXM2", "--model", "lenet5", "--epoch", "100", flag, value)

    assert code in {1, 2}
    assert flag in told
    assert "defect" not in told


def test_batch_of_a_worker_and_of_all_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["predict", "--device", "V100-SXM2", "--model", "lenet5", "--batch", "8", "--batch-global", "64"]
    code, told = said(capsys, *asked)

    assert code == 2
    assert "--batch-global" in told
    assert "--batch" in told
