"""`report` writes the files that it is asked for, from real records; without these flags it is what it was."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from street import paceline, study_of, to_toml

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    study = study_of({"overlap": [0.0, 0.8], "jitter": 0.02}, cluster={"workers_per_host": [1, 2]})
    (folder / "s.toml").write_text(to_toml(study), encoding="utf-8")
    done = paceline(folder, "run", "s.toml")
    assert done.returncode == 0, done.stderr
    return folder


def test_all_files_at_once_and_on_stdout_the_answer_the_recommendation_and_the_page(place: Path) -> None:
    done = paceline(
        place, "report", "s.toml", "--html", "r.html", "--markdown", "r.md", "--latex", "r.tex", "--svg", "figures"
    )

    assert done.returncode == 0, done.stderr
    for opening in ("Answer: ", "Recommendation: ", "Report: r.html"):
        assert sum(line.startswith(opening) for line in done.stdout.splitlines()) == 1
    assert {path.name for path in place.glob("r.*")} == {"r.html", "r.md", "r.tex"}
    pictures = sorted((place / "figures").iterdir())
    assert {path.name.split("-")[0] for path in pictures} == {
        "ladder",
        "phases",
        "scaling",
        "throughput",
        "timeline",
    }
    for path in pictures:
        assert ET.fromstring(path.read_text(encoding="utf-8")).get("viewBox")
        assert f"written: figures/{path.name}" in done.stderr
    assert "figures/scaling-weak-lenet5" in (place / "r.tex").read_text(encoding="utf-8")


def test_text_begins_with_the_answer_without_the_flags(place: Path) -> None:
    done = paceline(place, "report", "s.toml")

    assert done.stdout.startswith("Answer: ")
    assert "\n\nStudy street: Does it hold?\n\n## Measured\n\n" in done.stdout
    assert "next: paceline export s.toml --format csv" in done.stderr


def test_document_and_page_are_of_the_same_records(place: Path) -> None:
    done = paceline(place, "report", "s.toml", "--json", "--html", "both.html")

    document = json.loads(done.stdout)
    text = (place / "both.html").read_text(encoding="utf-8")
    for row in document["comparison"]["rows"]:
        assert f'data-row="{row["key"]}" data-field="throughput" data-value="{row["throughput"]["value"]!r}"' in text
    assert document["repeat_with"] in text


def test_curves_come_from_a_kept_calibration(place: Path) -> None:
    before = paceline(place, "report", "s.toml", "--html", "before.html")
    calibrated = paceline(place, "calibrate", "s.toml", "--no-run")
    after = paceline(place, "report", "s.toml", "--html", "after.html")

    assert (before.returncode, calibrated.returncode, after.returncode) == (0, 0, 0)
    assert "paceline calibrate s.toml</code>" in (place / "before.html").read_text(encoding="utf-8")
    text = (place / "after.html").read_text(encoding="utf-8")
    assert "modelled" in text
    assert 'class="predicted' in text


def test_collectives_have_their_files_too(tmp_path: Path) -> None:
    study = study_of(cluster={"workers_per_host": 2})
    study["workload"] = {"model": "collective", "collective": {"operation": "all_reduce", "sizes": "1KiB..16KiB"}}
    (tmp_path / "c.toml").write_text(to_toml(study), encoding="utf-8")
    assert paceline(tmp_path, "run", "c.toml").returncode == 0
    done = paceline(
        tmp_path, "report", "c.toml", "--html", "c.html", "--markdown", "c.md", "--latex", "c.tex", "--svg", "f"
    )

    assert done.returncode == 0, done.stderr
    assert 'data-field="busbw"' in (tmp_path / "c.html").read_text(encoding="utf-8")
    assert len(list((tmp_path / "f").iterdir())) == 1


def test_file_that_cannot_be_written_is_an_error_in_words(place: Path) -> None:
    done = paceline(place, "report", "s.toml", "--html", "no/such/folder/r.html")

    assert done.returncode == 4
    assert "no/such/folder/r.html" in done.stderr
    assert "Traceback" not in done.stderr
