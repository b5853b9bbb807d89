"""The files that people and services expect of a repository say what is true: versions, Pythons, targets, forms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

from paceline import __version__
from pythons import interpreter, supported

ROOT = Path(__file__).parents[2]
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def parsed(name: str) -> dict[str, Any]:
    return yaml.safe_load(read(name))


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))


def test_citation_has_what_the_format_asks_for_and_the_version_of_the_package() -> None:
    citation = parsed("CITATION.cff")

    assert set(citation) >= {"cff-version", "message", "title", "authors", "version", "license"}
    assert (citation["cff-version"], citation["type"], citation["license"]) == ("1.2.0", "software", "Apache-2.0")
    assert all("name" in author or "family-names" in author for author in citation["authors"])
    assert str(citation["version"]) == __version__


def test_change_log_begins_with_the_version_of_the_package() -> None:
    versions = re.findall(r"^## (\d+\.\d+\.\d+)\b", read("CHANGELOG.md"), re.MULTILINE)

    assert versions[0] == __version__
    assert versions == sorted(versions, key=lambda text: [int(part) for part in text.split(".")], reverse=True)


def test_workflow_runs_make_targets_only_on_every_supported_python() -> None:
    jobs = parsed(".github/workflows/ci.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]

    assert {command.split()[0] for command in commands} == {"make"}
    assert {command.split()[1] for command in commands} <= targets()
    assert jobs["unit"]["strategy"]["matrix"]["python"] == supported()
    assert [jobs[name].get("needs") for name in ("check", "unit", "contract", "browser")] == [
        None,
        "check",
        "unit",
        "contract",
    ]


def test_our_own_ci_runs_what_the_readme_explains() -> None:
    run = re.findall(r"^make (.+)$", read(".ci/run"), re.MULTILINE)

    assert run == re.findall(r"^    make (test[a-z-]*) ", read("README.md"), re.MULTILINE)


def test_the_site_is_built_so_that_a_warning_ends_it() -> None:
    """MkDocs counts no warnings with --quiet: --strict would then pass over dead links."""
    (build,) = re.findall(r"mkdocs build (.+)$", read("Makefile"), re.MULTILINE)

    assert build.split() == ["--strict"]


def test_no_example_of_a_property_fails_for_being_slow() -> None:
    assert settings().deadline is None


def test_hook_before_a_commit_is_make_check() -> None:
    (repo,) = parsed(".pre-commit-config.yaml")["repos"]

    assert repo["repo"] == "local"
    assert [hook["entry"] for hook in repo["hooks"]] == ["make check"]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_form_of_an_issue_has_a_name_and_fields_with_labels(form: Path) -> None:
    content = yaml.safe_load(form.read_text(encoding="utf-8"))

    assert {"name", "description", "body"} <= set(content)
    assert all(field["attributes"]["label"] for field in content["body"] if field["type"] != "markdown")
    assert len({field["id"] for field in content["body"]}) == len(content["body"])


def test_addresses_are_those_of_one_repository() -> None:
    addresses = re.findall(r"https://github\.com/([\w-]+/[\w-]+)", read("pyproject.toml") + read("CITATION.cff"))

    assert set(addresses) == {"paceline/paceline"}


def test_supported_pythons_begin_with_the_oldest_that_the_package_accepts() -> None:
    (oldest,) = re.findall(r'requires-python = ">=(.+)"', read("pyproject.toml"))

    assert supported()[0] == oldest


def test_an_interpreter_is_found_by_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shim that is there and refuses to run, as pyenv's may, is passed over; so is one of another version."""
    for name, text in {"python3.99": "#!/bin/sh\nexit 127\n", "python3.98": "#!/bin/sh\necho 3.97\n"}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    good = tmp_path / "second"
    good.mkdir()
    (good / "python3.99").write_text("#!/bin/sh\necho 3.99\n")
    (good / "python3.99").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{good}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))

    assert interpreter("3.99") == good / "python3.99"
    assert interpreter("3.98") is None
