"""The page holds what the comparison says, nothing that it should not, and needs nothing from outside."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from paceline.compare import Collectives, compare
from paceline.record.record import Doubt
from paceline.report.gallery import gallery
from paceline.report.headline import headline_of
from paceline.report.html import page
from records import make_record
from report_data import HOSTILE, make_records, make_report

VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """What a browser would see: elements with their attributes and words."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.words = [], [], {}
        self.feed(text)
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append((tag, len(self.elements) - 1))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for _, at in self.open:
            self.words[at] = self.words.get(at, "") + data

    def all(self, tag):
        return [(attrs, self.words.get(at, "")) for at, (name, attrs) in enumerate(self.elements) if name == tag]

    def numbers(self, field):
        """Row → value of a field, as tables carry it."""
        cells = [attrs for attrs, _ in self.all("td") if attrs.get("data-field") == field]
        return {attrs["data-row"]: float(attrs["data-value"]) for attrs in cells}


@pytest.fixture(scope="module")
def data():
    return make_report()


@pytest.fixture(scope="module")
def seen(data):
    return Page(page(data))


def test_answer_is_the_only_first_heading_and_the_question_follows(data, seen):
    (heading,) = seen.all("h1")

    assert heading[1].replace("\N{NO-BREAK SPACE}", " ") == headline_of(data.results).answer[0]
    text = page(data)
    assert text.index("<h1>") < text.index("How well does it scale?") < text.index("Take two workers.")


def test_caution_stands_beside_the_answer_and_above_the_question():
    text = page(make_report(records=make_records(simulated=True)))

    assert "<b>Caution: </b>Times are simulated, not measured." in text
    assert text.index("<h1>") < text.index("Caution: ") < text.index("Asked: ")


def test_headings_skip_no_level(seen):
    levels = [int(tag[1]) for tag, _ in seen.elements if re.fullmatch(r"h[1-6]", tag)]

    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize(
    "field", ["throughput", "step_s", "speedup", "efficiency", "cpu_utilisation", "peak_rss_bytes"]
)
def test_numbers_on_the_page_are_those_of_the_comparison(data, seen, field):
    expected = {row.key: getattr(row, field).value for row in data.results.rows}

    assert {key: value for key, value in seen.numbers(field).items() if key in expected} == expected


def test_intervals_are_there_with_all_their_digits(data, seen):
    cells = [attrs for attrs, _ in seen.all("td") if attrs.get("data-field") == "throughput" and "data-low" in attrs]

    assert len(cells) >= len(data.results.rows)
    for attrs in cells:
        quantity = data.results.row(attrs["data-row"]).throughput
        assert (float(attrs["data-low"]), float(attrs["data-high"])) == (quantity.low, quantity.high)


def test_sections_come_in_order(seen):
    names = [attrs["id"] for tag, attrs in seen.elements if tag == "section"]

    assert names == [
        "comparison",
        "scaling",
        "phases",
        "timelines",
        "bottlenecks",
        "resources",
        "machine",
        "repeat",
    ]


def test_what_has_no_data_is_left_out_with_the_reason_and_what_to_type():
    bare = make_report(records=[make_record()], explanations=(), timelines={}, resources={}, advice=None)
    said = {
        attrs["id"]: words
        for attrs, words in Page(page(bare)).all("p")
        if attrs.get("class") == "absent" and "id" in attrs
    }

    assert set(said) == {"scaling", "timelines", "bottlenecks", "resources", "fairness"}
    assert "workers_per_host" in said["scaling"]
    assert said["bottlenecks"].endswith("Type: paceline calibrate s.toml")
    assert said["fairness"].endswith("Type: paceline check fairness s.toml")
    assert "Recommended" not in page(bare)


def test_missing_predictions_are_said_under_the_curves(data):
    assert "no family of this study is calibrated. Type: <code>paceline calibrate s.toml</code>" in page(data)


def test_every_figure_has_a_table_its_csv_and_three_downloads(data, seen):
    names = {one.name: one for one in gallery(data).all()}
    figures = {attrs["id"] for attrs, _ in seen.all("figure")}
    (script,) = [words for attrs, words in seen.all("script") if attrs.get("id") == "data"]

    assert figures == set(names)
    assert json.loads(script) == {name: one.csv() for name, one in names.items()}
    assert len(seen.all("button")) == 3 * len(figures)
    assert len(seen.all("svg")) == len(figures)


def test_pictures_say_what_they_show_and_tables_have_scopes(seen):
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs, _ in seen.all("svg"))
    assert all(attrs.get("scope") in {"row", "col"} for attrs, _ in seen.all("th"))
    assert len(seen.all("table")) == sum(attrs.get("class") == "scroll" for attrs, _ in seen.all("div"))


def test_no_name_is_given_twice(seen):
    ids = [attrs["id"] for _, attrs in seen.elements if "id" in attrs]

    assert len(ids) == len(set(ids))


def test_page_asks_for_nothing_from_outside(data):
    text = page(data)

    assert not re.search(r"(?:src|href|action|poster|data|srcset)\s*=\s*[\"']?\s*(?:https?:)?//", text)
    assert not re.search(r"url\(\s*[\"']?(?!#)", text)
    assert "@import" not in text
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)[^\s\"']+", text)


def test_policy_allows_the_script_and_the_style_of_the_page_and_no_other(data):
    text = page(data)
    policy = next(attrs["content"] for attrs, _ in Page(text).all("meta") if attrs.get("http-equiv"))
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    parts = [
        re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1],
        re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1],
    ]

    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert allowed == [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
    assert ' style="' not in text
    assert not re.search(r"\son\w+=", text)


def test_hostile_names_stay_names():
    doubt = Doubt(code="spread", message=HOSTILE, hint=HOSTILE)
    records = make_records(model=HOSTILE, framework=HOSTILE, strategy=HOSTILE, doubts=(doubt,))
    data = make_report(
        name=HOSTILE,
        records=records,
        question=HOSTILE,
        machines=[{"id": HOSTILE, HOSTILE: HOSTILE}],
        environments=[{"name": HOSTILE}],
        command=HOSTILE,
        commands={"calibrate": HOSTILE},
    )
    seen = Page(page(data))

    assert len(seen.all("script")) == 2
    assert seen.all("img") == []
    assert all(not name.startswith("on") for _, attrs in seen.elements for name in attrs)
    assert any(words == HOSTILE for _, words in seen.all("code"))


def test_experiment_of_a_finding_waits_behind_a_line_that_opens_it(seen):
    (study,) = [words for _, words in seen.all("details") if "confirm or refute" in words and "[study]" in words]

    assert 'question = "Does <overlap> pay?"' in study


def test_refused_pairs_have_no_ratio():
    other = [make_record(framework="jax", strategy="flat", repeat=r) for r in range(3)]
    data = make_report(records=[*[make_record(repeat=r) for r in range(3)], *other], explanations=())
    seen = Page(page(data))

    assert seen.numbers("ratio") == {}
    assert any("not ranked" in words for _, words in seen.all("li"))


def test_collectives_have_a_page_too():
    data = make_report(results=Collectives(tables=(), shared="", notes=()), explanations=(), timelines={}, resources={})
    said = [words for attrs, words in Page(page(data)).all("p") if attrs.get("class") == "absent"]

    assert any("a study of collectives trains nothing" in words for words in said)


def test_nothing_measured_is_a_page_that_says_so():
    data = make_report(results=compare([]), explanations=(), timelines={}, resources={}, source=None)

    assert Page(page(data)).all("h1")[0][1] == "No answer yet: nothing was run."


def test_more_figures_than_anybody_reads_at_once_are_folded():
    records = [
        make_record(knobs={"k": k}, workers=n, step_s=0.05, repeat=r)
        for k in (0, 1)
        for n in range(1, 8)
        for r in (0, 1)
    ]
    seen = Page(page(make_report(records=records)))

    assert any(attrs.get("class") == "more" and "3 more" in words for attrs, words in seen.all("details"))


def test_raw_samples_never_reach_the_page():
    short, long = (make_report(records=make_records(steps=steps)) for steps in (20, 400))

    assert len(page(long)) < 1.02 * len(page(replace(short, source=long.source)))
