"""The HTML report in Chromium, from disk: what it shows is what is recorded, and it asks nobody for anything."""

from __future__ import annotations

import csv
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from browser.browser_rig import Opened, chromium, missing
from paceline.report.html import page
from records import make_record
from report_data import HOSTILE, make_records, make_report
from street import paceline, study_of, to_toml

pytestmark = [
    pytest.mark.browser,
    pytest.mark.processes,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
    pytest.mark.xdist_group("browser"),
]

LAW = study_of(
    {"overlap": [0.0, 0.8], "jitter": 0.02, "run_jitter": 0.01, "beta_s_per_byte": 4e-8},
    name="law",
    cluster={"workers_per_host": [1, 2, 4]},
    measure={"repeats": 3, "steps": 30},
)
"""Four workers that hide nothing keep less than 80 %: there is a knee."""
REAL = study_of({"time": "real"}, name="real", measure={"steps": 60, "repeats": 1})
"""Long enough for the meter to see it several times: three seconds."""
FIELDS = ("throughput", "step_s", "speedup", "efficiency", "cpu_utilisation", "peak_rss_bytes")
Opening = Callable[..., Opened]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as context:
        yield context


@pytest.fixture
def opening(browser: Any) -> Iterator[Opening]:
    """Opens files; their tabs are closed after the test."""
    tabs: list[Opened] = []

    def open_file(file: Path, **how: Any) -> Opened:
        tabs.append(Opened(browser, file, **how))
        return tabs[-1]

    yield open_file
    for tab in tabs:
        tab.page.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real records of the null framework, and their pages, made by the real command line."""
    folder = tmp_path_factory.mktemp("report")
    for name, study in (("law", LAW), ("real", REAL)):
        (folder / f"{name}.toml").write_text(to_toml(study), encoding="utf-8")
        done = paceline(folder, "run", f"{name}.toml")
        assert done.returncode == 0, done.stderr
    done = paceline(folder, "calibrate", "law.toml", "--no-run")
    assert done.returncode == 0, done.stderr
    for name in ("law", "real"):
        done = paceline(folder, "report", f"{name}.toml", "--html", f"{name}.html")
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def compared(place: Path) -> dict[str, Any]:
    return json.loads(paceline(place, "compare", "law.toml", "--json").stdout)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with every section, some of it never measured."""
    file = tmp_path_factory.mktemp("full") / "full.html"
    file.write_text(page(make_report()), encoding="utf-8")
    return file


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["law", "real"])
def test_page_is_quiet_and_asks_for_nothing_but_itself(opening: Opening, place: Path, name: str, dark: bool) -> None:
    opened = opening(place / f"{name}.html", dark=dark)

    assert opened.troubles == []
    assert opened.requests == [(place / f"{name}.html").as_uri()]


@pytest.mark.parametrize("field", FIELDS)
def test_numbers_on_the_page_are_those_of_compare(
    opening: Opening, place: Path, compared: dict[str, Any], field: str
) -> None:
    opened = opening(place / "law.html")
    shown = opened.ask(
        "field => [...document.querySelectorAll(`#comparison td[data-field='${field}']`)]"
        ".map(cell => [cell.dataset.row, Number(cell.dataset.value)])",
        field,
    )
    expected = {row["key"]: row[field]["value"] for row in compared["rows"]}

    assert len(shown) >= len(expected)
    assert dict(shown) == expected
    assert all(expected[key] == value for key, value in shown)


def test_ratios_on_the_page_are_those_of_compare(opening: Opening, place: Path, compared: dict[str, Any]) -> None:
    opened = opening(place / "law.html")
    shown = opened.ask(
        "() => [...document.querySelectorAll(\"td[data-field='ratio']\")]"
        ".map(cell => [cell.dataset.row, Number(cell.dataset.value)])"
    )

    assert dict(shown) == {f"{pair['a']}|{pair['b']}": pair["ratio"] for pair in compared["verdicts"]}


def test_marks_of_the_comparison_are_the_throughputs(opening: Opening, place: Path, compared: dict[str, Any]) -> None:
    opened = opening(place / "law.html")
    shown = opened.ask(
        "() => [...document.querySelectorAll('#comparison svg .mark')]"
        ".map(mark => [mark.dataset.row, Number(mark.dataset.value)])"
    )

    assert dict(shown) == {row["key"]: row["throughput"]["value"] for row in compared["rows"]}


@pytest.mark.parametrize(
    ("section", "figures", "marks"),
    [
        ("comparison", 3, 6),  # a contest a size, two knobs each
        ("scaling", 1, 12),  # two families of three sizes, throughput and efficiency
        ("phases", 1, 36),  # six rows, six phases
        ("timelines", 2, 48),  # the largest of two families: four ranks, six phases
    ],
)
def test_every_figure_is_drawn(opening: Opening, place: Path, section: str, figures: int, marks: int) -> None:
    opened = opening(place / "law.html")
    boxes = opened.ask(
        "section => [...document.querySelectorAll(`#${section} svg`)]"
        ".map(svg => { const box = svg.getBoundingClientRect(); return [box.width, box.height]; })",
        section,
    )
    counted = opened.ask("section => document.querySelectorAll(`#${section} svg .mark`).length", section)

    assert len(boxes) == figures
    assert all(width > 300 and height > 50 for width, height in boxes)
    assert counted == marks


def test_predictions_have_a_band_and_the_knee_beside_the_ideal_line(opening: Opening, place: Path) -> None:
    opened = opening(place / "law.html")
    counts = opened.ask(
        "() => ['predicted', 'band', 'ideal', 'knee'].map(kind => document.querySelectorAll(`#scaling .${kind}`).length)"
    )

    assert counts[:3] == [4, 4, 4]
    assert counts[3] >= 1


def test_words_and_marks_stay_inside_their_picture(opening: Opening, place: Path) -> None:
    outside = opening(place / "law.html").ask(
        """() => [...document.querySelectorAll("svg")].flatMap(svg => {
            const paper = svg.getBoundingClientRect();
            return [...svg.querySelectorAll("text, .mark")].filter(one => {
                const box = one.getBoundingClientRect();
                return box.left < paper.left - 2 || box.right > paper.right + 2
                    || box.top < paper.top - 2 || box.bottom > paper.bottom + 2;
            }).map(one => one.textContent);
        })"""
    )

    assert outside == []


def test_resources_are_drawn_of_a_run_that_lasted(opening: Opening, place: Path) -> None:
    opened = opening(place / "real.html")

    assert opened.ask("() => document.querySelectorAll('#resources svg .mark').length") == 2
    assert "left out" in opening(place / "law.html").ask("() => document.getElementById('resources').textContent")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_paper_and_ink_follow_the_reader(opening: Opening, full: Path, dark: bool) -> None:
    opened = opening(full, dark=dark)
    paper, ink, drawn = opened.ask(
        "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,"
        " getComputedStyle(document.querySelector('svg text.f-ink')).fill]"
    )

    assert (paper, ink) == (
        ("rgb(20, 23, 26)", "rgb(231, 233, 235)") if dark else ("rgb(255, 255, 255)", "rgb(28, 33, 38)")
    )
    assert drawn == ink


def test_print_is_light_even_for_a_dark_reader(opening: Opening, full: Path) -> None:
    opened = opening(full, dark=True)
    opened.page.emulate_media(media="print", color_scheme="dark")

    assert opened.ask("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.ask("() => getComputedStyle(document.querySelector('nav')).display") == "none"


def test_paper_shows_what_is_unfolded(opening: Opening, full: Path) -> None:
    opened = opening(full)
    opened.ask("() => { document.querySelector('.trial > details').open = true; }")
    opened.page.emulate_media(media="print")
    displays = opened.ask(
        "() => [...document.querySelectorAll('.trial > details')].map(one => getComputedStyle(one).display)"
    )
    tallest = opened.ask(
        "() => Math.max(...[...document.querySelectorAll('.picture svg')].map(one => one.getBoundingClientRect().height))"
    )

    assert displays[0] == "block"
    assert set(displays[1:]) <= {"none"}
    assert tallest <= 200 / 25.4 * 96 + 1


@pytest.mark.parametrize("width", [320, 400, 768])
def test_narrow_page_never_scrolls_sideways(opening: Opening, place: Path, full: Path, width: int) -> None:
    for file in (place / "law.html", place / "real.html", full):
        opened = opening(file, width=width)
        opened.ask("() => { for (const one of document.querySelectorAll('details')) one.open = true; }")

        assert opened.ask("() => document.documentElement.scrollWidth") <= width


def test_wide_table_scrolls_inside_its_box(opening: Opening, place: Path) -> None:
    opened = opening(place / "law.html", width=400)

    assert opened.ask(
        "() => [...document.querySelectorAll('#comparison > .scroll')]"
        ".some(box => box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX === 'auto')"
    )


def test_downloads_are_whole_files(opening: Opening, place: Path, compared: dict[str, Any], tmp_path: Path) -> None:
    opened = opening(place / "law.html", dark=True)
    name = opened.ask("() => document.querySelector('#comparison figure').id")

    rows = list(csv.DictReader(opened.download(name, "csv", tmp_path).read_text(encoding="utf-8").splitlines()))
    known = {row["key"]: row["throughput"] for row in compared["rows"]}
    assert len(rows) == 2
    for row in rows:
        ends = [float(row[f"throughput{end}"]) for end in ("", "_low", "_high")]
        assert ends == [known[row["key"]][part] for part in ("value", "low", "high")]

    drawn = ET.fromstring(opened.download(name, "svg", tmp_path).read_text(encoding="utf-8"))
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert drawn[0].get("fill") == "#ffffff"

    png = opened.download(name, "png", tmp_path).read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert (width, height) == (1440, 2 * int(float(drawn.get("height") or 0)))
    assert opened.troubles == []


def test_every_figure_hands_out_a_picture(opening: Opening, full: Path, tmp_path: Path) -> None:
    opened = opening(full)
    for name in opened.ask("() => [...document.querySelectorAll('figure')].map(one => one.id)"):
        assert opened.download(name, "png", tmp_path).stat().st_size > 2000
        ET.fromstring(opened.download(name, "svg", tmp_path).read_text(encoding="utf-8"))
    assert opened.troubles == []


def test_names_that_want_to_run_do_not(opening: Opening, tmp_path: Path) -> None:
    file = tmp_path / "hostile.html"
    records = make_records(model=HOSTILE, framework=HOSTILE)
    file.write_text(page(make_report(name=HOSTILE, records=records, question=HOSTILE)), encoding="utf-8")
    opened = opening(file)

    assert opened.troubles == []
    assert opened.ask("() => document.querySelectorAll('img').length") == 0
    assert opened.ask("() => document.querySelectorAll('script').length") == 2


def test_buttons_wait_for_the_script_that_serves_them(opening: Opening, full: Path) -> None:
    source = full.read_text(encoding="utf-8")

    assert source.count('class="tools" hidden=""') == source.count("<figure ")
    assert opening(full).ask("() => [...document.querySelectorAll('.tools')].every(one => !one.hidden)")


def test_a_million_samples_make_a_small_page(opening: Opening, tmp_path: Path) -> None:
    records = [
        make_record(knobs={"k": k}, workers=4, steps=12_500, step_s=0.05 + 0.01 * k, repeat=repeat)
        for k in range(4)
        for repeat in range(5)
    ]
    assert sum(record.samples.num_rows for record in records if record.samples is not None) >= 1_000_000
    file = tmp_path / "large.html"
    file.write_text(page(make_report(records=records)), encoding="utf-8")

    assert file.stat().st_size < 5_000_000
    opened = opening(file)
    assert opened.troubles == []
    assert opened.ask("() => performance.now() > 0 && document.readyState") == "complete"
    assert opened.ask("() => document.querySelectorAll('#comparison svg .mark').length") == 4
