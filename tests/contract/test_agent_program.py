"""The agent as it travels: one program of several modules that needs nothing on the host but Python 3.8."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from paceline.sites import tether
from paceline.sites.remote import agent
from paceline.sites.remote.launch import agent_command, agent_program, through_pipes

FOLDER = Path(agent.__file__).parent
LONGEST_ARGUMENT = 128 * 1024
"""The kernel's MAX_ARG_STRLEN."""


def imports_of(name: str) -> list[str]:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return imported + [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]


def test_every_module_travels() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == {*agent.MODULES, "__init__"}


@pytest.mark.parametrize("name", agent.MODULES)
def test_module_imports_the_standard_library_and_modules_that_are_loaded_before_it(name: str) -> None:
    before = {f"{agent.__name__}.{module}" for module in agent.MODULES[: agent.MODULES.index(name)]}
    strangers = {module for module in imports_of(name) if module.split(".")[0] not in sys.stdlib_module_names}

    assert strangers <= before


@pytest.mark.parametrize("path", [*sorted(FOLDER.glob("*.py")), Path(tether.__file__)], ids=lambda path: path.stem)
def test_sources_are_python_3_8(path: Path) -> None:
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_command_line_is_one_line_below_the_limit_of_the_kernel() -> None:
    command = agent_command("python3")

    assert max(len(argument) for argument in command) < LONGEST_ARGUMENT
    assert not any("\n" in argument for argument in command)


@pytest.mark.processes
def test_program_runs_by_itself_in_an_empty_environment(tmp_path: Path) -> None:
    # Isolated and without site-packages, in an empty folder: nothing of ours can be imported.
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", agent_program()],
        env={},
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        send = Connection(os.dup(process.stdin.fileno()), readable=False)
        receive = Connection(os.dup(process.stdout.fileno()), writable=False)
        send.send_bytes(b'{"number": 7, "do": "run", "argv": ["pwd"], "env": {}, "timeout_s": 60}')

        assert receive.recv_bytes().decode() == f'{{"number": 7, "answer": {{"code": 0, "text": "{tmp_path}\\n"}}}}'
        send.close()
        process.stdin.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
        receive.close()


@pytest.mark.processes
def test_command_is_an_agent_without_any_variable() -> None:
    started = through_pipes(["env", "--ignore-environment", *agent_command(sys.executable)], "an empty environment")

    assert started.about.pid > 0
    started.close()
