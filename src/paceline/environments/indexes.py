"""Where packages come from: pip's own configuration, used for pip and uv alike.

The configuration may hold secrets. It is therefore never printed, and is passed on in environment variables.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CONFIG_TIMEOUT_S = 60.0
"""pip needs a second or so to start on a slow disk."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_LINE = re.compile(r"^(:env:|global|install|download|user|site)\.([a-z-]+)=(.*)$")
_SECTIONS = ("global", "install", ":env:")
"""Sections that `pip install` reads; each overrides the one before."""


def redacted(text: str) -> str:
    """The text without addresses: the address of an index may contain a password, which must not get into a record."""
    return _URL.sub("<index>", text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Indexes:
    """The settings of pip that define where packages come from."""

    index_url: str | None = None
    """The index to use instead of the public one."""
    extra_index_urls: tuple[str, ...] = ()
    """Indexes to use in addition."""
    find_links: tuple[str, ...] = ()
    """Folders and pages of wheels."""
    no_index: bool = False
    """Use no index, only `find_links`."""
    cert: str | None = None
    """Certificates to trust."""
    trusted_hosts: tuple[str, ...] = ()
    """Hosts whose certificates are not checked."""

    def for_pip(self, extra: Sequence[str] = ()) -> dict[str, str]:
        """Environment variables for pip; not arguments, because every user can read the arguments of a process."""
        return _present(
            {
                "PIP_INDEX_URL": self.index_url,
                "PIP_EXTRA_INDEX_URL": " ".join([*self.extra_index_urls, *extra]),
                "PIP_FIND_LINKS": " ".join(self.find_links),
                "PIP_NO_INDEX": "1" if self.no_index else None,
                "PIP_CERT": self.cert,
                "PIP_TRUSTED_HOST": " ".join(self.trusted_hosts),
            }
        )

    def for_uv(self, extra: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> dict[str, str]:
        """Environment variables for uv; settings that the user gave to uv itself take precedence or are added."""
        env = os.environ if environ is None else environ
        indexes = [*env.get("UV_INDEX", "").split(), *self.extra_index_urls, *extra]
        links = [*filter(None, env.get("UV_FIND_LINKS", "").split(",")), *self.find_links]
        return _present(
            {
                "UV_DEFAULT_INDEX": env.get("UV_DEFAULT_INDEX") or self.index_url,
                "UV_INDEX": " ".join(indexes),
                "UV_FIND_LINKS": ",".join(links),
                # pip treats all indexes alike; uv must do so too, or it stops at the first index that has the name.
                "UV_INDEX_STRATEGY": "unsafe-best-match",
                "UV_INSECURE_HOST": env.get("UV_INSECURE_HOST") or " ".join(self.trusted_hosts),
                "SSL_CERT_FILE": env.get("SSL_CERT_FILE") or self.cert,
            }
        )


def pip_indexes(*pythons: Path) -> Indexes:
    """The settings of the first of these interpreters (the host's own first) that has a pip."""
    for python in (Path(sys.executable), *pythons):
        try:
            answer = subprocess.run(
                [str(python), "-m", "pip", "--disable-pip-version-check", "config", "list"],
                capture_output=True,
                text=True,
                timeout=CONFIG_TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        if answer.returncode == 0:
            return parse_pip_config(answer.stdout)
    return parse_pip_config(
        "\n".join(
            f":env:.{name[4:].lower().replace('_', '-')}={value!r}"
            for name, value in os.environ.items()
            if name.startswith("PIP_")
        )
    )


def parse_pip_config(text: str) -> Indexes:
    """Read the output of `pip config list`."""
    sections: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and match[1] in sections:
            sections[match[1]][match[2]] = str(ast.literal_eval(match[3]))
    merged = {key: value for section in _SECTIONS for key, value in sections[section].items()}
    return Indexes(
        index_url=merged.get("index-url"),
        extra_index_urls=tuple(merged.get("extra-index-url", "").split()),
        find_links=tuple(_absolute(place) for place in merged.get("find-links", "").split()),
        no_index=merged.get("no-index", "").lower() in {"1", "true", "yes", "on"},
        cert=merged.get("cert"),
        trusted_hosts=tuple(merged.get("trusted-host", "").split()),
    )


def _absolute(place: str) -> str:
    # Installers are started in another folder, where a relative path would not be valid.
    return place if "://" in place else str(Path(place).expanduser().absolute())


def _present(variables: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if value}
