"""Every link, anchor, named file and named make target on a page leads to something that exists."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS_OF_OTHERS = {".git", ".venv", ".paceline", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "site"}


def tree() -> list[str]:
    """Every file and folder of the repository, from its root, folders with a slash at their end."""
    paths = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in FOLDERS_OF_OTHERS and name != "__pycache__")
        base = Path(folder).relative_to(ROOT)
        paths += [f"{(base / name).as_posix()}/" for name in folders]
        paths += [(base / name).as_posix() for name in sorted(files)]
    return paths


TREE = tree()
PAGES = [ROOT / path for path in TREE if path.endswith(".md") and not path.startswith(("tests/", "src/"))]
NAMING = [*PAGES, *(ROOT / path for path in TREE if path.startswith(("studies/", ".github/")) and path[-1] != "/")]
"""Files with names of other files in them: studies say in their comments what they belong to."""
TOP = sorted({path.split("/")[0] for path in TREE if "/" in path})
"""Folders at the root: a path that starts with one of them is a path of the repository wherever it stands."""
OURS = ("py", "toml", "md", "sh", "zip", "lock", "cff", "yml", "css", "js")
"""Endings of files that the repository has. Other endings on pages are of files that commands write."""
YOURS = {
    "../data",
    "../records/NAME.zip",
    ".paceline/",
    "RECORDS.zip",
    "config.toml",
    "configurator.py",
    "imagenet/main.py",
    "layers/",
    "mine.toml",
    "mnist/main.py",
    "nanoGPT/train.py",
    "report.md",
    "samples/",
    "site/",
    "study.toml",
    "train.py",
    "model.py",
    "word_language_model/main.py",
}
"""Names on pages that stand for a file of the reader's, of a program of others, or one that a command makes there."""


def shown(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code(text: str) -> str:
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page: Path) -> set[str]:
    """As GitHub and the site make them of headings: a heading that comes again is numbered."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    names: set[str] = set(re.findall(r'\bid="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        again = sum(name == slug or re.fullmatch(rf"{re.escape(slug)}-\d+", name) is not None for name in names)
        names.add(f"{slug}-{again}" if again else slug)
    return names


def broken_links(page: Path) -> list[str]:
    """Links and pictures of a page that lead nowhere, by Markdown, by reference or by HTML."""
    text = page.read_text(encoding="utf-8")
    prose = without_code(text)
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    links += re.findall(r"^\[[^\]]+\]: (\S+)", prose, re.MULTILINE)
    links += re.findall(r'\b(?:href|src|srcset)="([^"\s]+)"', prose)
    broken = []
    for link in links:
        target, _, anchor = link.partition("#")
        if re.match(r"(https?|mailto):", target):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(link)
    return broken


def named_files(text: str) -> set[str]:
    """Paths of the repository anywhere on a page, and other file names in code font or code blocks."""
    top = "|".join(re.escape(folder) for folder in TOP)
    ending = "|".join(OURS)
    names = set(re.findall(rf"(?<![\w./$~-])(?:{top})/[\w./*-]*", text))
    code = re.findall(r"`([^`\n]+)`", text)
    code += re.findall(r"^(?: {4}|\t)(.+)$", text, re.MULTILINE)
    code += re.findall(r"^```[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for piece in code:
        names |= set(re.findall(rf"(?<![\w./$~=@:-])(?:[\w.*-]+/)*[\w*-]+\.(?:{ending})(?![\w/.-])", piece))
        # A path in code font alone, without an ending or of a folder; "samples/s" is a unit.
        names |= set(re.findall(r"^(?!\S*/s$)(?:[\w.-]+/)+[\w.-]*$", piece))
    return {name.rstrip(".") for name in names}


def is_there(name: str, page: Path, tree: list[str]) -> bool:
    """Whether a name is a path, or the end of one; capitals such as NAME stand for any name."""
    if name in YOURS or name in set(re.findall(r"^```\w+ file=(\S+)", page.read_text(encoding="utf-8"), re.MULTILINE)):
        return True
    pattern = re.sub(r"\b[A-Z]{4,}\b(?!\.md)", "*", name)
    if "/" in name and name.partition("/")[0] in TOP:
        return any(fnmatch(path.rstrip("/"), pattern.rstrip("/")) for path in tree)
    return any(fnmatch(f"/{path}", f"*/{pattern}") for path in tree)


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", NAMING, ids=shown)
def test_files_that_a_page_names_exist(page: Path) -> None:
    names = named_files(page.read_text(encoding="utf-8"))

    assert sorted(name for name in names if not is_there(name, page, TREE)) == []


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_make_targets_that_a_page_names_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    text = page.read_text(encoding="utf-8")

    assert set(re.findall(r"(?:`|^ {4}|^\$ )make ([a-z][a-z-]*)", text, re.MULTILINE)) <= targets


def test_a_missing_file_anchor_and_study_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n[x](gone.md) [y](#nowhere) [z](#a-page)\n\n    paceline run studies/gone.toml\n")

    assert broken_links(page) == ["gone.md", "#nowhere"]
    assert [name for name in named_files(page.read_text()) if not is_there(name, page, TREE)] == ["studies/gone.toml"]
