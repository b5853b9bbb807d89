"""A page in a real browser: opened from disk, with everything that it asks for and everything that goes wrong noted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def missing() -> str | None:
    """Why there is no browser, or None."""
    if CHROMIUM is None:
        return "no program chromium: make test-browser installs it, as root"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "no package playwright: make test-browser installs it"
    return None


@contextmanager
def chromium(folder: Path) -> Iterator[Any]:
    """A browser that nobody has used before; gives a context in which pages are opened."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            str(folder), executable_path=CHROMIUM, args=FLAGS, accept_downloads=True
        )
        try:
            yield context
        finally:
            context.close()


class Opened:
    """One file in one tab."""

    def __init__(self, context: Any, file: Path, *, width: int = 1100, dark: bool = False) -> None:
        self.file = file
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.page = context.new_page()
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme="dark" if dark else "light")
        self.page.on("console", lambda said: self.troubles.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("requestfailed", lambda asked: self.troubles.append(f"failed: {asked.url}"))
        self.page.on("request", lambda asked: self.requests.append(asked.url))
        self.page.goto(file.as_uri())

    def ask(self, program: str, *given: Any) -> Any:
        """The value of a JavaScript expression."""
        return self.page.evaluate(program, *given)

    def download(self, figure: str, form: str, folder: Path) -> Path:
        """What a button of a figure hands out."""
        with self.page.expect_download() as waited:
            self.page.locator(f'#{figure} button[data-form="{form}"]').click()
        path = folder / waited.value.suggested_filename
        waited.value.save_as(path)
        return path
