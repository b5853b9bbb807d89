"""Adds to the site the files outside of docs/ that pages link to: a hook of MkDocs, used by `make docs`.

Pages link to ARCHITECTURE.md, a study or a program by its place in the repository, which works on GitHub and in an
editor. In the site such a file is a page under `repository/`: Markdown as it is, anything else as a listing. Links are
rewritten to the places of these pages.
"""

from __future__ import annotations

import os.path
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
ALWAYS = ("ARCHITECTURE.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages at the root that the menu has whether or not another page links to them."""
LINK = re.compile(r"(?P<text>[^\[\]\n]*)\]\((?P<target>[^)#\s:]+)(?P<anchor>#[^)\s]*)?\)")
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".yml": "yaml"}
PICTURES = {".png", ".svg"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file of the repository that is linked to, by pages of docs/ and by pages added here."""
    waiting = [ROOT / name for name in ALWAYS]
    waiting += [target for file in files.documentation_pages() for target in _linked(DOCS / file.src_uri)]
    added: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in added or not _is_brought(path):
            continue
        added.add(path)
        files.append(File.generated(config, _place(path), content=_content(path)))
        waiting += _linked(path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  MkDocs names them
    """Rewrite links to the places of pages in the site; remove everything but the language from code fences."""
    here = posixpath.dirname(page.file.src_uri)
    origin = _origin(page.file.src_uri)

    def turned(link: re.Match[str]) -> str:
        target = _target(origin, link["target"])
        place = posixpath.relpath(_place(target), here or ".") if target.exists() else link["target"]
        # A link that is called by its file's name is called by the page's title here.
        text = _title(target) if link["text"] == target.name and target.suffix == ".md" else link["text"]
        return f"{text}]({place}{link['anchor'] or ''})"

    markdown = re.sub(r"^(```\w+) .+$", r"\1", markdown, flags=re.MULTILINE)
    pieces = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(piece if piece.startswith("```") else LINK.sub(turned, piece) for piece in pieces)


def _linked(page: Path) -> Iterator[Path]:
    """Files and folders that a page links to; the files of a folder that has no page."""
    if page.is_dir():
        yield from _listed(page)
    elif page.suffix == ".md":
        for link in LINK.finditer(page.read_text(encoding="utf-8")):
            target = _target(page, link["target"])
            if target.exists():
                yield target


def _listed(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def _target(page: Path, link: str) -> Path:
    """The file behind a relative link; for a folder, its index page."""
    path = Path(os.path.normpath(page.parent / link))
    if path.is_dir():
        return next((path / name for name in ("index.md", "README.md") if (path / name).exists()), path)
    return path


def _title(page: Path) -> str:
    """The first heading of a page."""
    return page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def _is_brought(path: Path) -> bool:
    """Whether a page has to be made for a file; pages and pictures of docs/ are in the site already."""
    inside = path.is_relative_to(DOCS) and path.suffix in {".md", *PICTURES}
    return not inside and path.is_relative_to(ROOT)


def _place(path: Path) -> str:
    """Place of a file of the repository in the site, relative to docs/ as in MkDocs."""
    if not _is_brought(path):
        return path.relative_to(DOCS).as_posix()
    place = f"repository/{path.relative_to(ROOT).as_posix()}"
    if path.is_dir():
        return f"{place}/index.md"
    return place if path.suffix == ".md" else f"{place}.md"


def _origin(src_uri: str) -> Path:
    """The file of the repository from which a page of the site was made."""
    if not src_uri.startswith("repository/"):
        return DOCS / src_uri
    path = ROOT / src_uri.removeprefix("repository/")
    return path if path.exists() else path.with_suffix("")


def _content(path: Path) -> str:
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        return f"# {name}\n\n" + "".join(f"- [{file.name}]({file.name})\n" for file in _listed(path))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return f"---\nsearch:\n  exclude: true\n---\n\n# {name}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"
