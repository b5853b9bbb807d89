"""Pages say what the program does: flags, exit codes, warnings, study keys, commands. Links are in test_pages.py."""

from __future__ import annotations

import argparse
import ast
import re
import runpy
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

import paceline
from paceline import errors
from paceline.cli import COMMANDS, EXIT_DEFECT, EXIT_INTERRUPTED, make_parser
from paceline.explain.finding import CAUSES
from paceline.frameworks import FRAMEWORKS, load_framework
from paceline.recommend.objective import CLASSES, GOALS
from paceline.record import OutcomeKind
from paceline.record.doubt_codes import DoubtCode
from paceline.record.fact import DERIVED_BY
from paceline.record.phases import ORDER
from paceline.spec import SECTIONS, read_study
from paceline.stats.known_by import DERIVED, GUESSED, MEASURED, MODELLED
from paceline.stats.verdict import Verdict
from paceline.workloads import MODELS
from paceline_worker import protocol

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
COMMANDS_PAGE = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
HELP = {"-h", "--help"}


def leaf_parsers(
    parser: argparse.ArgumentParser, name: str = "paceline"
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command and action with its parser, the top included."""
    branches = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not branches or name == "paceline":
        yield name, parser
    for branch in branches:
        for word, child in branch.choices.items():
            yield from leaf_parsers(child, f"{name} {word}")


def section(heading: str, page: str = COMMANDS_PAGE) -> str:
    match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)

    assert match, f"no section '{heading}'"
    return match[1]


def first_cells(text: str) -> list[str]:
    """What stands in code font at the start of each row of the section's tables."""
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


def test_every_command_has_a_section_and_every_section_a_command() -> None:
    headings = set(re.findall(r"^## (paceline.*)$", COMMANDS_PAGE, re.MULTILINE))

    assert {name for name, _ in leaf_parsers(make_parser())} == headings


@pytest.mark.parametrize("name", [name for name, _ in leaf_parsers(make_parser())])
def test_flags_of_command_are_those_of_its_section(name: str) -> None:
    parser = dict(leaf_parsers(make_parser()))[name]
    flags = {flag for action in parser._actions for flag in action.option_strings} - HELP

    assert {cell.split()[0] for cell in first_cells(section(name)) if cell.startswith("-")} == flags


def test_every_exit_code_is_documented_and_no_other() -> None:
    kinds = [errors.PacelineError, *errors.PacelineError.__subclasses__()]
    codes = {kind.exit_code for kind in kinds} | {0, EXIT_INTERRUPTED, EXIT_DEFECT}

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", section("Exit codes"), re.MULTILINE)} == codes


def test_every_environment_variable_is_documented_and_no_other() -> None:
    used = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"\bPACELINE_[A-Z]+\b", path.read_text(encoding="utf-8"))
    }

    assert set(first_cells(section("Environment variables"))) == used


def made_codes() -> set[str]:
    """Codes of every Doubt and RowWarning that the source makes by name."""
    codes = set()
    for path in (SOURCE / "paceline").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"Doubt", "RowWarning"}:
                values = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
                codes |= {value.value for value in values if isinstance(value, ast.Constant)}
    return codes


def test_every_warning_is_documented_and_no_other() -> None:
    page = (DOCS / "concepts" / "measuring.md").read_text(encoding="utf-8")
    codes = set(get_args(DoubtCode))

    assert set(first_cells(section("Warnings", page))) == codes
    # The store names these after the file that is gone or damaged.
    named = {f"{series}-{state}" for series in ("samples", "layers") for state in ("missing", "damaged")}
    assert codes == made_codes() | named


def test_study_reference_is_current() -> None:
    generate = runpy.run_path(str(DOCS / "generate_reference.py"))
    current = (DOCS / "reference" / "study.md").read_text(encoding="utf-8")

    assert current == generate["page"](), "run: .venv/bin/python docs/generate_reference.py"


def test_pictures_of_the_report_are_current() -> None:
    taken = runpy.run_path(str(DOCS / "take_pictures.py"))

    assert taken["DRAWN_BY"].read_text(encoding="ascii").strip() == taken["looks"](), (
        "a report looks different from its pictures in docs/pictures. Run: make test-browser (installs Chromium), "
        ".venv/bin/python docs/take_pictures.py, look at docs/pictures, commit them"
    )


def test_study_reference_names_every_key_model_and_knob() -> None:
    page = (DOCS / "reference" / "study.md").read_text(encoding="utf-8")
    cells = set(first_cells(page))

    assert {key for keys in SECTIONS.values() for key in keys} <= cells
    assert set(MODELS) <= cells
    for name in FRAMEWORKS:
        assert set(load_framework(name).capabilities.knobs) <= cells


def test_protocol_page_names_version_events_job_keys_and_exit_codes() -> None:
    page = (DOCS / "reference" / "protocol.md").read_text(encoding="utf-8")
    events = set(re.findall(r"^    (\w+)  ", protocol.__doc__ or "", re.MULTILINE))
    job = ast.parse((SOURCE / "paceline" / "plan" / "job.py").read_text(encoding="utf-8"))
    returned = next(node for node in ast.walk(job) if isinstance(node, ast.Return) and isinstance(node.value, ast.Dict))
    keys = {key.value for key in returned.value.keys if isinstance(key, ast.Constant)}

    assert f"now **{protocol.VERSION}**" in page
    assert set(first_cells(section("Events", page))) == events
    assert set(first_cells(section("The job", page))) == keys
    assert {int(c) for c in re.findall(r"^\| (\d+) \|", section("Exit codes of a worker", page), re.MULTILINE)} == {
        0,
        protocol.EXIT_CRASHED,
        protocol.EXIT_MEMORY,
        protocol.EXIT_ENDED,
    }


def test_tables_of_facts_on_the_protocol_page_are_current() -> None:
    generate = runpy.run_path(str(DOCS / "generate_reference.py"))
    current = (DOCS / "reference" / "protocol.md").read_text(encoding="utf-8")

    assert current == generate["protocol_page"](), "run: .venv/bin/python docs/generate_reference.py"


def test_derived_phases_of_tensorflow_are_told_as_they_are_made() -> None:
    """By differences where the step is compiled or eager, and where there are peers: see tensorflow_phases."""
    doc = load_framework("tensorflow").capabilities.knobs["derive_phases"].doc

    assert "with jit_compile, eager or peers" in doc


def glossary() -> list[str]:
    page = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")
    return re.findall(r"^\| \*\*(.+?)\*\* \|", page, re.MULTILINE)


def test_glossary_has_one_row_per_term_and_every_outcome() -> None:
    page = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")

    assert len(glossary()) == len(set(glossary())) > 150
    assert all(kind.value in page for kind in OutcomeKind)


def test_glossary_has_every_word_of_the_closed_vocabularies() -> None:
    spoken = {*ORDER, *DERIVED_BY, *CAUSES, *CLASSES, *(verdict.words for verdict in Verdict)}
    spoken |= {MEASURED, DERIVED, MODELLED, GUESSED}
    # The row has the word as people look for it; its text has the words as they are printed.
    spoken -= {"contention for cores"}

    assert spoken <= set(glossary())


def test_glossary_has_every_goal() -> None:
    page = (DOCS / "reference" / "glossary.md").read_text(encoding="utf-8")

    assert all(goal in page for goal in GOALS)


def commands_in(text: str) -> list[str]:
    """Commands that a page shows: lines of code blocks, and code font in sentences."""
    lines = re.findall(r"^(?: {4}|\$ )(paceline .+)$", text, re.MULTILINE)
    return [*lines, *re.findall(r"`(?:\.venv/bin/)?(paceline [^`]+)`", text.replace("\n", " "))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_pages_are_understood(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands_in(page.read_text(encoding="utf-8")):
        words = [word.strip("[]") for word in shlex.split(command.split(" > ")[0], comments=True)][1:]
        words = [word for word in words if word not in {"…", "COMMAND"}]
        # What comes with a name only, such as `paceline env`, is a mention and not a line to type.
        if words and words[0] in COMMANDS and (len(words) > 1 or words[0] == "doctor"):
            try:
                make_parser().parse_args(words)
            except SystemExit:
                pytest.fail(f"{command}: {capsys.readouterr().err}")


def test_commands_in_hints_are_understood(capsys: pytest.CaptureFixture[str]) -> None:
    """An error that says what to type must not lead to the next error."""
    known = set(COMMANDS)
    for path in SOURCE.rglob("*.py"):
        for command in re.findall(
            r"paceline ((?:\w+ )*(?:--[a-z-]+(?: [a-z.]+)? ?)+)", path.read_text(encoding="utf-8")
        ):
            words = shlex.split(command)
            if words[0] in known:
                parser = dict(leaf_parsers(make_parser()))[f"paceline {words[0]}"]
                flags = {flag for action in parser._actions for flag in action.option_strings}
                assert {word for word in words if word.startswith("--")} <= flags, f"{path.name}: {command}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_toml_on_pages_is_a_study_or_a_part_of_one(page: Path) -> None:
    from paceline.spec.toml_file import tomllib

    text = page.read_text(encoding="utf-8")
    for marks, block in re.findall(r"^```toml([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        data = tomllib.loads(block)
        # How a validation is split has a file of its own.
        assert set(data) <= ({"split"} if "split" in marks else set(SECTIONS))
        if "study" in data and "wrong" not in marks:
            read_study(data)


def test_worker_is_installed_from_this_repository_as_long_as_no_index_has_it() -> None:
    files = [*PAGES, *(ROOT / "examples").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    said = {path: re.findall(r"pip install (\S*worker)\b", path.read_text(encoding="utf-8")) for path in files}
    # Pages speak of the repository's folder, examples of their own.
    places = [((ROOT if path in PAGES else path.parent) / place).resolve() for path in files for place in said[path]]

    assert len(places) >= 3
    assert set(places) == {ROOT / "packaging" / "worker"}


def test_readme_is_two_screens_with_a_picture_and_an_answer_as_the_terminal_gives_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    answer = re.search(r"<!-- terminal-answer: .*?-->\n```text\n(.*?)```\n<!-- /terminal-answer -->", readme, re.DOTALL)

    assert len(readme.splitlines()) <= 95
    assert "](docs/pictures/scaling.svg)" in readme
    assert answer
    assert max(len(line) for line in answer[1].splitlines()) <= 80


def mapped() -> set[str]:
    """Paths of the file map in ARCHITECTURE.md, from the root: an indented name lies in the folder above it."""
    above: list[tuple[int, str]] = []
    paths = set()
    for line in re.findall(r"^    ( *[\w./]+)  ", section("Where things are", ARCHITECTURE), re.MULTILINE):
        indent, name = len(line) - len(line.lstrip()), line.strip()
        above = [(depth, folder) for depth, folder in above if depth < indent]
        above.append((indent, name))
        paths.add("".join(part for _, part in above))
    return paths


def test_architecture_maps_the_tree_as_it_is() -> None:
    """Every module and folder of the host, and nothing that is not there."""
    host = {f"src/paceline/{path.name}{'/' * path.is_dir()}" for path in (SOURCE / "paceline").glob("[!_]*")}
    paths = mapped()

    assert host <= paths
    assert {path for path in paths if not (ROOT / path).exists()} == set()


def test_api_page_has_every_public_name_and_each_entry_exists() -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    entries = re.findall(r"^::: (\S+)\.(\w+)$", page, re.MULTILINE)

    assert {name for _, name in entries} >= set(paceline.__all__) - {"__version__"}
    assert all(hasattr(import_module(module), name) for module, name in entries)


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}

    assert {page for page in menu if not page.startswith("repository/")} == pages
    assert len(menu) == len(set(menu))


def test_decisions_are_numbered_and_half_a_page() -> None:
    pages = sorted((DOCS / "decisions").glob("[0-9]*.md"))

    assert [page.name[:4] for page in pages] == [f"{number:04d}" for number in range(1, len(pages) + 1)]
    listed = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((.+)\)", listed) == [page.name for page in pages]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(f"# {page.name[:4]} ")
        assert "**Decided:**" in text
        assert len(text.splitlines()) <= 40, f"{page.name} is longer than half a page"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_no_folder_of_the_authors_machine(page: Path) -> None:
    assert not re.search(r"/(work|root|home|tmp)/", page.read_text(encoding="utf-8"))
