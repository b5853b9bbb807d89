"""Real builds with uv and with pip, of tiny wheels made here: no network.

A second each with uv; most of what pip's take is venv putting pip itself there, so only what differs is done twice.
"""

import base64
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from paceline.environments import PinnedEnvironment
from paceline.environments.definition import Definition
from paceline.environments.interpreters import find_uv
from paceline.environments.lock import Pin
from paceline.errors import EnvironmentBuildError

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
needs_uv = pytest.mark.skipif(find_uv() is None, reason="uv is not installed")
TOOLS = [pytest.param("uv", marks=needs_uv), "pip"]


def make_wheel(folder, name, version):
    """The smallest wheel there is: one module that knows its version."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text)}\n"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    for name, version in [("pacetiny", "1.0"), ("pacetiny", "2.0"), ("paceother", "1.5")]:
        make_wheel(folder, name, version)
    return folder


@pytest.fixture(autouse=True)
def _only_our_wheels(monkeypatch, wheels):
    for name in [n for n in os.environ if n.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    # As in a host's activated environment, with variables that must not reach an installer.
    monkeypatch.setenv("VIRTUAL_ENV", "/nowhere")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")


def define(*requirements, name="tiny", **other):
    pins = tuple(Pin(name=n, version=v) for n, v in (r.split("==") for r in requirements))
    return Definition(name=name, description="", python=PYTHON, package="pacetiny", pins=pins, disk_bytes=1, **other)


BOTH = define("pacetiny==1.0", "paceother==1.5", imports=("pacetiny", "paceother"))


@pytest.mark.parametrize("tool", TOOLS)
def test_environment_holds_exactly_its_lock(tmp_path, tool):
    environment = PinnedEnvironment(BOTH, root=tmp_path, tools=[tool])
    assert environment.state().state == "buildable"
    lines = []

    environment.create(lines.append)

    environment.verify()
    state = environment.state()
    assert (state.state, state.version) == ("ready", "1.0")
    assert state.size_bytes > 0
    assert environment.fingerprint() == {
        "name": "tiny",
        "lock": environment.lock,
        "python": ".".join(map(str, sys.version_info[:3])),
        "packages": {"paceother": "1.5", "pacetiny": "1.0"},
    }
    answer = subprocess.run(
        environment.command(["-c", "import pacetiny, sys; print(pacetiny.VERSION, sys.prefix)"]),
        env=environment.variables(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() == ["1.0", str(environment.folder)]
    assert f"with {tool}" in lines[-1]


@needs_uv
def test_second_create_and_a_waiting_builder_build_nothing(tmp_path):
    environment = PinnedEnvironment(BOTH, root=tmp_path)
    lines = []
    builders = [threading.Thread(target=environment.create, args=[lines.append]) for _ in range(3)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    environment.create(pytest.fail)

    assert sum("ready" in line for line in lines) == 1


@needs_uv
def test_uninstalled_package_is_noticed_and_comes_back(tmp_path):
    environment = PinnedEnvironment(BOTH, root=tmp_path)
    environment.create(print)
    shutil.rmtree(environment._site / "paceother-1.5.dist-info")

    with pytest.raises(EnvironmentBuildError, match=r"missing: paceother 1\.5") as caught:
        environment.verify()
    assert "paceline env build tiny" in caught.value.hint
    assert environment.state().state == "broken"

    environment.create(print)
    environment.verify()


@needs_uv
def test_anything_else_than_what_was_built_is_noticed(tmp_path):
    environment = PinnedEnvironment(define("pacetiny==1.0", forbidden=("nvidia-*",)), root=tmp_path)
    environment.create(print)
    site = environment._site

    def complaint():
        with pytest.raises(EnvironmentBuildError) as caught:
            environment.verify()
        return caught.value.message

    (site / "surplus-3.dist-info").mkdir()
    assert "not in its lock: surplus 3" in complaint()
    (site / "surplus-3.dist-info").rename(site / "nvidia_cublas-12.dist-info")
    assert "has nvidia-cublas, which must not be there" in complaint()
    (site / "nvidia_cublas-12.dist-info").rmdir()
    (site / "pacetiny.py").write_text("")
    assert "1 file(s) missing or damaged, e.g. pacetiny.py" in complaint()
    with (site / "pacetiny-1.0.dist-info" / "RECORD").open("a") as record:
        record.write("more.py,,\n")
    assert "pacetiny changed since it was built" in complaint()
    environment._python.unlink()
    assert "is gone" in complaint()


@needs_uv
def test_changed_lock_is_stale_until_it_is_built_again(tmp_path):
    old = PinnedEnvironment(BOTH, root=tmp_path)
    old.create(print)
    new = PinnedEnvironment(define("pacetiny==2.0"), root=tmp_path)

    assert new.lock != old.lock
    assert new.state().state == "stale"
    with pytest.raises(EnvironmentBuildError, match="its lock changed since it was built"):
        new.verify()

    new.create(print)

    assert (new.state().state, new.state().version) == ("ready", "2.0")
    assert not old.folder.exists()


@pytest.mark.parametrize("tool", TOOLS)
def test_version_that_nobody_has_is_an_error_that_breaks_nothing_else(tmp_path, tool):
    good = PinnedEnvironment(BOTH, root=tmp_path)
    good.create(print)
    bad = PinnedEnvironment(define("pacetiny==9.9", forbidden=("nvidia-*",)), root=tmp_path, tools=[tool])

    with pytest.raises(EnvironmentBuildError, match=r"not on any index.*CUDA") as caught:
        bad.create(print)

    assert "9.9" in caught.value.message
    assert "paceline env build tiny" in caught.value.hint
    assert bad.state().state == "stale"
    assert not bad.folder.exists()
    good.verify()


@needs_uv
def test_pip_is_tried_when_uv_fails_and_the_user_is_told(tmp_path, monkeypatch):
    # uv refuses a setting it does not know; pip never reads it.
    monkeypatch.setenv("UV_LINK_MODE", "nonsense")
    environment = PinnedEnvironment(BOTH, root=tmp_path)
    lines = []

    environment.create(lines.append)

    assert any("uv could not build it; trying pip" in line for line in lines)
    environment.verify()


@needs_uv
def test_extra_index_is_asked_only_when_the_own_configuration_lacks_the_pins(tmp_path, monkeypatch):
    extra = tmp_path / "extra"
    make_wheel(extra / "pacetiny", "pacetiny", "3.0+cpu")
    link = "pacetiny-3.0+cpu-py3-none-any.whl"
    (extra / "pacetiny" / "index.html").write_text(f'<!DOCTYPE html><a href="{link}">{link}</a>')
    (tmp_path / "empty").mkdir()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "empty").as_uri())
    root, index = tmp_path / "cache", extra.as_uri()
    lines = []

    PinnedEnvironment(define("pacetiny==1.0", extra_indexes=(index,)), root=root, tools=["uv"]).create(lines.append)
    assert not any("public index" in line for line in lines)

    environment = PinnedEnvironment(define("pacetiny==3.0+cpu", extra_indexes=(index,)), root=root, tools=["uv"])
    environment.create(lines.append)
    assert any("asking the framework's public index too" in line for line in lines)
    assert environment.state().version == "3.0+cpu"
    assert "://" not in "".join(lines)


@needs_uv
def test_failed_rebuild_keeps_what_was_there(tmp_path, monkeypatch):
    environment = PinnedEnvironment(BOTH, root=tmp_path, tools=["uv"])
    environment.create(print)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))

    with pytest.raises(EnvironmentBuildError):
        environment.create(print, rebuild=True)

    environment.verify()


@needs_uv
def test_module_that_does_not_import_is_an_error_with_its_last_lines(tmp_path):
    environment = PinnedEnvironment(define("pacetiny==1.0", imports=("no_such_module",)), root=tmp_path)

    with pytest.raises(EnvironmentBuildError, match="does not work") as caught:
        environment.create(print)
    assert "No module named 'no_such_module'" in caught.value.message
    assert environment.state().state == "buildable"


KILLED = """
import os, signal, sys
from pathlib import Path
from paceline.environments import PinnedEnvironment, read_definition

def say(line):
    if line.startswith("  "):  # the installer is at work
        os.kill(os.getpid(), signal.SIGKILL)

PinnedEnvironment(read_definition(Path(sys.argv[1])), root=Path(sys.argv[2]), tools=[sys.argv[3]]).create(say)
"""


@pytest.mark.parametrize("tool", TOOLS)
def test_build_hit_by_kill_9_is_not_believed_and_the_next_one_works(tmp_path, tool):
    from paceline.environments import read_definition

    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "requirements.lock").write_text("pacetiny==1.0\npaceother==1.5\n")
    (folder / "environment.toml").write_text(
        f'name = "tiny"\ndescription = "x"\npython = "{PYTHON}"\npackage = "pacetiny"\n'
        'lock = "requirements.lock"\ndisk_bytes = 1\n'
    )
    root = tmp_path / "cache"
    source = Path(__file__).parents[2] / "src"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, folder, root, tool],
        env=dict(os.environ, PYTHONPATH=str(source)),
        check=False,
    )
    environment = PinnedEnvironment(read_definition(folder), root=root, tools=[tool])

    assert killed.returncode == -signal.SIGKILL
    assert environment.folder.exists()
    assert environment.state().state == "buildable"
    with pytest.raises(EnvironmentBuildError):
        environment.verify()

    environment.create(print)

    environment.verify()
    assert not list((root / "environments").glob(".tiny*"))


@needs_uv
def test_remove_frees_everything(tmp_path):
    environment = PinnedEnvironment(BOTH, root=tmp_path)
    environment.create(print)

    environment.remove()
    environment.remove()

    assert environment.state().state == "buildable"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["tiny.lock"]


@needs_uv
def test_environment_in_use_is_not_removed(tmp_path):
    environment = PinnedEnvironment(BOTH, root=tmp_path)
    environment.create(print)
    with subprocess.Popen(environment.command(["-c", "input()"]), stdin=subprocess.PIPE) as process:
        with pytest.raises(EnvironmentBuildError, match=f"in use by process {process.pid}"):
            environment.remove()
        process.communicate(b"\n")

    environment.verify()
