from pathlib import Path

import pytest

from paceline.environments import PinnedEnvironment, cache_root
from paceline.environments.cache import exclusive, is_locked, lack_of_space
from paceline.environments.definition import Definition
from paceline.environments.failures import explain_failure
from paceline.environments.installed import damaged_files, installed_packages, record_digests
from paceline.environments.lock import Pin
from paceline.errors import EnvironmentBuildError

TINY = Definition(
    name="tiny",
    description="",
    python="3.11",
    package="tiny",
    pins=(Pin(name="tiny", version="1.0"),),
    disk_bytes=2**30,
    forbidden=("nvidia-*",),
)


def test_cache_is_where_the_user_says(tmp_path):
    assert cache_root({"PACELINE_CACHE": str(tmp_path)}) == tmp_path
    assert cache_root({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "paceline"
    assert cache_root({"XDG_CACHE_HOME": "relative"}) == Path.home() / ".cache" / "paceline"


def test_lack_of_space_is_said_in_bytes_that_people_read(tmp_path):
    assert lack_of_space(2**30, tmp_path / "not" / "yet", free=2**30) is None
    assert "needs 1 GiB" in lack_of_space(2**30, tmp_path, free=2**29)


def test_full_disk_is_found_before_anything_is_built(tmp_path):
    environment = PinnedEnvironment(TINY, root=tmp_path, free_bytes=1000)

    with pytest.raises(EnvironmentBuildError, match="needs 1 GiB") as caught:
        environment.create(pytest.fail)
    assert "PACELINE_CACHE" in caught.value.hint
    assert "paceline env remove" in caught.value.hint
    assert environment.state().state == "unavailable"
    assert not environment.folder.exists()


def test_cache_that_cannot_be_written_is_an_error_with_a_way_out(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(EnvironmentBuildError, match="cannot be written") as caught:
        PinnedEnvironment(TINY, root=tmp_path / "file").create(print)
    assert "PACELINE_CACHE" in caught.value.hint


def test_missing_python_makes_it_unavailable(tmp_path):
    definition = Definition(
        name="old",
        description="",
        python="3.99",
        package="a",
        pins=(Pin(name="a", version="1"),),
        disk_bytes=0,
    )

    state = PinnedEnvironment(definition, root=tmp_path).state()
    assert state.state == "unavailable"
    assert "pyenv install 3.99" in state.fix


def test_lock_file_is_held_while_the_block_runs(tmp_path):
    path = tmp_path / "folder" / "x.lock"

    assert not is_locked(path)
    with exclusive(path):
        assert is_locked(path)
    assert not is_locked(path)


def test_installed_distributions_are_read_from_their_folders(tmp_path):
    for name in ("Typing_Extensions-4.1.dist-info", "old-1.0-py3.6.egg-info", "~umpy-1.0.dist-info", "numpy"):
        (tmp_path / name).mkdir()

    assert installed_packages([tmp_path, tmp_path / "absent"]) == {"old": "1.0", "typing-extensions": "4.1"}


def test_missing_and_cut_files_are_damaged(tmp_path):
    info = tmp_path / "a-1.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("a.py,sha256=x,3\nb.py,sha256=x,3\nc.py,sha256=x,3\na.pyc,,\na-1.dist-info/RECORD,,\n")
    (tmp_path / "a.py").write_text("abc")
    (tmp_path / "b.py").write_text("")

    assert damaged_files(tmp_path) == ["b.py", "c.py"]
    assert list(record_digests(tmp_path)) == ["a"]


@pytest.mark.parametrize(
    "line, message, hint",
    [
        ("OSError: [Errno 28] No space left on device", "the disk is full", "PACELINE_CACHE"),
        (
            "Error: The virtual environment was not created: ensurepip is not available",
            "cannot make",
            "pip install uv",
        ),
        ("ERROR: No matching distribution found for tiny==1.0", "(CUDA) was not taken", "extra-index-url"),
        ("error: dns error: failed to lookup", "cannot be reached", "check the network"),
        ("something nobody foresaw", "pip could not build it", "paceline env build tiny"),
    ],
)
def test_failure_shows_the_last_lines_and_the_fix(line, message, hint):
    error = explain_failure(TINY, "pip", ["before", line])

    assert message in error.message
    assert error.message.endswith(f"    before\n    {line}")
    assert hint in error.hint
