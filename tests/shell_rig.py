"""A real shell on a terminal of its own, into which tests type, with completion set up as `paceline completion` says."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

from street import command_environment, paceline

PATIENCE_S = 120
"""Upper bound on waits for something that will appear; never a measure of speed."""
TAB, HOME = "\t", "\x01"
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>])|[\r\x08\x07]")
SCRIPTS = {"zsh": ".zfunc/_paceline", "fish": ".config/fish/completions/paceline.fish"}
"""Shell → where its completion script goes; bash evaluates it when it starts."""
HIDDEN = ("XDG_", "ZDOTDIR", "EDITOR", "VISUAL")
"""How variables begin that would lead a shell to another home, or to keys of another editor."""


class Shell:
    """One shell, its home a folder where completion was set up by the documented line."""

    def __init__(self, name: str, home: Path) -> None:
        self.name, self.home = name, home
        _set_up(name, home)
        self._terminal, other = pty.openpty()
        environment = command_environment(
            home, HOME=str(home), TERM="xterm", PATH=f"{home / 'bin'}:{os.environ['PATH']}", LC_ALL="C.UTF-8"
        )
        self._process = subprocess.Popen(
            # zsh and fish find their files at home, bash reads /etc before its own unless it is named.
            [name, *(["--rcfile", ".bashrc"] if name == "bash" else []), "-i"],
            cwd=home,
            env={key: value for key, value in environment.items() if not key.startswith(HIDDEN)},
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  no thread runs here
        )
        os.close(other)
        self._asked = 0

    def completed(self, line: str) -> list[str]:
        """The words of the line after the tab key: the shell itself is made to print them."""
        self._asked += 1
        first, last = f"asked{self._asked}", f"told{self._asked}"
        # The marks stand in brackets only where they are printed, not where they are typed.
        self.type(f"{line}{TAB} {last}{HOME}printf '<%s>' {first} \n")
        printed = self.wait_for(lambda text: re.search(rf"<{first}>((?:<[^>]*>)*)<{last}>", text))
        return re.findall(r"<([^>]*)>", printed[1])

    def lists(self, line: str, *names: str) -> None:
        """Wait until all names appear after the tab key; bash lists at its second press. The line stays half typed."""
        self.type(f"{line}{TAB}{TAB if self.name == 'bash' else ''}")
        every = "".join(rf"(?=.*\b{re.escape(name)}\b)" for name in names)
        self.wait_for(lambda text: re.search(f"(?s)^{every}", text))

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def wait_for(self, seen: Callable[[str], re.Match[str] | None]) -> re.Match[str]:
        """Read what the shell draws until something is there."""
        drawn, deadline = b"", time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if select.select([self._terminal], [], [], 1.0)[0]:
                drawn += os.read(self._terminal, 65536)
            if match := seen(ESCAPES.sub("", drawn.decode("utf-8", "replace"))):
                return match
        raise AssertionError(f"{self.name} drew only: {drawn!r}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)


def _set_up(name: str, home: Path) -> None:
    """What a user does once."""
    program = home / "bin" / "paceline"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m paceline "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    if name == "bash":
        (home / ".bashrc").write_text('eval "$(paceline completion bash)"\n', encoding="utf-8")
        return
    ended = paceline(home, "completion", name)
    assert (ended.returncode, ended.stderr) == (0, "")
    script = home / SCRIPTS[name]
    script.parent.mkdir(parents=True)
    script.write_text(ended.stdout, encoding="utf-8")
    # Without this folder fish reads all manual pages of the machine in the background, and goes on after the test.
    (home / ".local/share/fish/generated_completions").mkdir(parents=True)
    # -u: no question about folders of this machine that others may write.
    (home / ".zshrc").write_text("fpath+=~/.zfunc\nautoload -Uz compinit\ncompinit -u\n", encoding="utf-8")
