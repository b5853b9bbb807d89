"""Verifies the environment of a run on hosts that share no files with us, and builds it where it is missing."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

import paceline
from paceline.environments import Environment, known_environments
from paceline.errors import SiteError
from paceline.sites import HostAnswer, Site

ASK_S = 60.0
BUILD_S = 3600.0
"""Time for a host to tell what is installed, and to build an environment."""
PASSED_ON = ("PACELINE_CACHE", "XDG_CACHE_HOME", "HOME")
"""Variables that decide where environments are kept, on the hosts as here."""

TELL = """\
import json, os, sys
versions = {}
for folder in sys.path:
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        if entry.endswith((".dist-info", ".egg-info")) and not entry.startswith("~"):
            name, _, version = entry.rpartition(".")[0].partition("-")
            versions.setdefault(name.lower().replace("_", "-").replace(".", "-"), version.partition("-py")[0])
print(json.dumps(versions))
"""
"""A program for the environment's interpreter that prints what is installed there: distribution → version.

It reads this as `environments.installed` does here."""


class Equipment:
    """Which environments were verified on all hosts of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._verified: set[tuple[str, str]] = set()

    def ensure(self, environment: Environment) -> None:
        """Verify an environment on every open host, and build it where it is missing or not the same.

        Raises:
            SiteError: it cannot be built on a host, with what to do there.
        """
        if (environment.name, environment.lock) in self._verified:
            return
        expected = environment.fingerprint()["packages"]
        wrong = _differ(self._installed(environment), expected)
        if wrong:
            self._build(environment)
            wrong = _differ(self._installed(environment), expected)
        if wrong:
            host, why = next(iter(wrong.items()))
            raise SiteError(
                f"environment {environment.name} is not the same on {host}: {why}",
                hint=f"on {host}: paceline env build {environment.name}",
            )
        self._verified.add((environment.name, environment.lock))

    def _installed(self, environment: Environment) -> list[HostAnswer]:
        command = environment.command(["-I", "-c", TELL])
        return self._site.each_host(command, environment.variables(), within_s=ASK_S)

    def _build(self, environment: Environment) -> None:
        """Do what a user would do by hand: make a virtual environment with this source and what it needs, then build.

        A host that has the environment already is done at once. Whether the build succeeded shows when hosts are asked
        again.
        """
        pins = known_environments().get(environment.name)
        if pins is None:
            raise SiteError(
                f"{environment.name} is not on all hosts, and nothing says how to build it there",
                hint="install it on every host at the same path, or use a pinned environment: paceline env list",
            )
        source = Path(paceline.__file__).parent
        sources = [path for path in sorted(source.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
        self._site.deliver([*sources, pins])
        tools = "$CACHE/host-tools"
        script = f"""set -e
CACHE=${{PACELINE_CACHE:-${{XDG_CACHE_HOME:-$HOME/.cache}}/paceline}}
[ -x {tools}/bin/python ] || python3 -m venv {tools}
{tools}/bin/python -m pip install -q psutil uv
PATH={tools}/bin:$PATH PYTHONPATH={shlex.quote(str(source.parent))} {tools}/bin/python -m paceline.environments """
        passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        passed_on["PACELINE_ENVIRONMENTS"] = str(pins.parent)
        answers = self._site.each_host(
            ["sh", "-c", script + shlex.quote(environment.name)], passed_on, within_s=BUILD_S
        )
        for answer in answers:
            if answer.code != 0:
                last = answer.text.strip().splitlines()[-1:] or ["no message"]
                raise SiteError(
                    f"environment {environment.name} cannot be built on {answer.host}: {last[0]}",
                    hint=f"on {answer.host}: paceline env build {environment.name}",
                )


def _differ(answers: list[HostAnswer], expected: Mapping[str, str]) -> dict[str, str]:
    """Host → what is different there, from what each host has installed."""
    wrong = {}
    for answer in answers:
        if answer.code != 0:
            wrong[answer.host] = (answer.text.strip().splitlines() or ["it does not start"])[-1]
            continue
        versions: dict[str, str] = json.loads(answer.text)
        for name, version in expected.items():
            if versions.get(name) != version:
                wrong[answer.host] = f"{name} is {versions.get(name, 'missing')}, and {version} here"
                break
    return wrong
