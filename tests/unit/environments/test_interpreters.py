import os
import sys
from pathlib import Path

import pytest

from paceline.environments import ExistingInterpreter, HostInterpreter
from paceline.environments.interpreters import find_interpreter, missing_interpreter, probe
from paceline.errors import EnvironmentBuildError, SpecError

RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHER = "3.99"


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def answering(path, version):
    """A stand-in for a Python that we do not have: answers the probe as that one would."""
    answer = f'{{"path": "{path}", "version": "{version}", "search": []}}'
    return script(path, f"#!/bin/sh\necho '{answer}'\n")


def test_running_interpreter_is_found_without_path():
    found = find_interpreter(RUNNING, {"PATH": ""})

    assert found is not None
    assert found.minor == RUNNING


def test_link_on_path_leads_to_the_real_interpreter(tmp_path):
    real = probe(sys.executable)
    link = tmp_path / f"python{RUNNING}"
    link.symlink_to(real.path)

    assert probe(link).version == real.version


def test_interpreter_on_path_is_found(tmp_path):
    path = answering(tmp_path / f"python{OTHER}", f"{OTHER}.1")

    assert find_interpreter(OTHER, {"PATH": str(tmp_path)}).path == path


def test_shim_that_fails_and_one_that_lies_are_passed_over_for_the_newest_of_pyenv(tmp_path):
    script(tmp_path / "shims" / f"python{OTHER}", "#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    answering(tmp_path / "liar" / f"python{OTHER}", "3.6.15")
    answering(tmp_path / "pyenv" / "versions" / f"{OTHER}.2" / "bin" / f"python{OTHER}", f"{OTHER}.2")
    newest = answering(tmp_path / "pyenv" / "versions" / f"{OTHER}.10" / "bin" / f"python{OTHER}", f"{OTHER}.10")
    path = os.pathsep.join([str(tmp_path / "shims"), str(tmp_path / "liar")])

    assert find_interpreter(OTHER, {"PATH": path, "PYENV_ROOT": str(tmp_path / "pyenv")}).path == newest


def test_missing_interpreter_comes_with_reason_and_fix(tmp_path):
    assert find_interpreter(OTHER, {"PATH": str(tmp_path), "HOME": str(tmp_path)}) is None
    reason, fix = missing_interpreter(OTHER)
    assert OTHER in reason
    assert f"pyenv install {OTHER}" in fix


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "not a program"])
def test_path_that_is_no_python_is_refused(tmp_path, text):
    path = script(tmp_path / "python", text)

    with pytest.raises(SpecError, match="is not a Python that starts"):
        ExistingInterpreter(path)
    with pytest.raises(SpecError, match="is not a Python that starts"):
        ExistingInterpreter(tmp_path / "absent")


def test_existing_interpreter_is_used_as_it_is():
    environment = ExistingInterpreter(sys.executable, package="pytest")

    environment.verify()
    assert environment.state().state == "ready"
    assert environment.state().version == pytest.__version__
    assert environment.fingerprint()["packages"]["pytest"] == pytest.__version__
    assert environment.command(["-V"]) == [sys.executable, "-V"]


def test_existing_interpreter_without_the_package_says_how_to_install_it():
    state = ExistingInterpreter(sys.executable, package="no-such-thing").state()

    assert state.state == "unavailable"
    assert state.fix == f"{sys.executable} -m pip install no-such-thing"


def test_package_more_makes_an_existing_interpreter_another_environment(tmp_path):
    site = tmp_path / "site"
    (site / "one-1.0.dist-info").mkdir(parents=True)
    answer = f'{{"path": "/x", "version": "3.9.1", "search": ["{site}"]}}'
    python = script(tmp_path / "python", f"#!/bin/sh\necho '{answer}'\n")
    before = ExistingInterpreter(python)
    (site / "two-1.0.dist-info").mkdir()

    with pytest.raises(EnvironmentBuildError, match="packages changed"):
        before.verify()
    assert before.lock != ExistingInterpreter(python).lock


def test_host_lock_depends_on_nothing_but_the_python_version():
    host = HostInterpreter()

    assert host.lock == f"host-{RUNNING}"
    assert host.fingerprint()["packages"] == {}
    assert host.command(["-c", "pass"])[0] == sys.executable


def test_variables_do_not_leak_the_hosts_own_virtual_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "active" / "bin"), "/usr/bin"]))
    environment = ExistingInterpreter(sys.executable)

    assert set(environment.variables()) == {"PATH", "PYTHONNOUSERSITE"}
    assert environment.variables()["PATH"].split(os.pathsep) == [str(Path(sys.executable).parent), "/usr/bin"]
