"""The documentation site in Chromium, from disk and from a server: it searches, and asks nothing of anybody else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from browser.browser_rig import Opened, chromium, missing

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
    pytest.mark.xdist_group("browser"),
]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("mkdocs") is None:
        pytest.skip("no package mkdocs: make docs installs it")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def found(page: Any, words: str) -> list[str]:
    """Addresses of the pages that a search finds, best first."""
    page.locator("input.md-search__input").press_sequentially(words)
    page.locator("li.md-search-result__item").first.wait_for(timeout=20_000)
    return page.eval_on_selector_all("a.md-search-result__link", "links => links.map(link => link.href)")


def test_search_works_from_disk_and_asks_for_files_of_the_site_only(site: Path, context: Any) -> None:
    opened = Opened(context, site / "index.html")

    assert any("glossary.html" in link for link in found(opened.page, "straggler"))
    assert [url for url in opened.requests if not url.startswith((site.as_uri(), "data:", "about:", "blob:"))] == []
    assert opened.troubles == []


def test_search_works_from_a_server(address: str, site: Path, context: Any) -> None:
    opened = Opened(context, site / "index.html")
    opened.requests.clear()
    opened.page.goto(f"{address}/reference/commands.html")

    assert any("predict.html" in link for link in found(opened.page, "what-if"))
    assert {urlsplit(url).netloc for url in opened.requests if url.startswith("http")} == {urlsplit(address).netloc}


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["index", "reference/commands", "reference/api", "results/frameworks"])
def test_page_is_no_wider_than_the_window(name: str, dark: bool, site: Path, context: Any) -> None:
    opened = Opened(context, site / f"{name}.html", width=1300, dark=dark)
    # A choice that an earlier page of this browser made is kept; here the system's counts.
    opened.ask("localStorage.clear()")
    opened.page.reload()

    assert opened.ask("document.documentElement.scrollWidth <= window.innerWidth")
    assert opened.ask("document.body.dataset.mdColorScheme") == ("slate" if dark else "default")
    assert opened.troubles == []
