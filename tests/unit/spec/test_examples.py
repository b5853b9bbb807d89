from __future__ import annotations

import re
from pathlib import Path

import pytest

from paceline.errors import SpecError
from paceline.spec import SECTIONS, load_study, parse_study
from paceline.spec.examples import example_named, examples, first_study

ROOT = Path(__file__).parents[3]


def test_every_study_of_the_repository_ships_under_its_own_name() -> None:
    files = [*(ROOT / "studies").rglob("*.toml"), *(ROOT / "examples").rglob("*.toml")]

    assert {example.path for example in examples().values()} == set(files)
    assert all(load_study(example.path).name == name for name, example in examples().items())


def test_example_brings_the_files_that_it_names(tmp_path: Path) -> None:
    named = {name: example.files for name, example in examples().items() if example.files}

    assert named == {
        "own-graph": ("model.py",),
        "own-script": ("train.py",),
        "own-script-marked": ("train_marked.py",),
    }
    assert set(example_named("own-graph").copies(tmp_path / "mine.toml")) == {
        tmp_path / "mine.toml",
        tmp_path / "model.py",
    }


def test_unknown_example_names_the_nearest() -> None:
    with pytest.raises(SpecError, match="no example is called 'quikstart'") as caught:
        example_named("quikstart")

    assert "did you mean 'quickstart'" in (caught.value.hint or "")


def test_first_study_is_a_study_under_the_name_that_it_is_given() -> None:
    study = parse_study(first_study("mine"), source="mine.toml")

    assert study.name == "mine"
    assert study.axes["cluster.workers_per_host"] == (1, 2)


def test_every_key_that_the_first_study_mentions_exists_also_where_it_is_commented_out() -> None:
    section = ""
    mentioned = []
    for line in first_study("mine").splitlines():
        if title := re.match(r"\[(\w+)\]", line):
            section = title[1]
        elif key := re.match(r"(?:# )?(\w+) = ", line):
            mentioned.append((section, key[1]))
    commented = [key for section, key in mentioned if key not in SECTIONS[section]]

    assert len(mentioned) > 15
    assert commented == ["overlap"]  # a knob of torch, under its own title
