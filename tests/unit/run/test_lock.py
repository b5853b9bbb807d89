"""The machine's lock lies where everybody may write: nothing that another user put there is followed or overwritten."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from paceline.errors import SiteError
from paceline.run.lock import machine_lock

PRECIOUS = "root:x:0:0\n"


def hold(path: Path) -> None:
    with machine_lock(lambda _: None, path):
        pass


def precious(folder: Path) -> Path:
    file = folder / "precious"
    file.write_text(PRECIOUS, encoding="utf-8")
    file.chmod(0o600)
    return file


def assert_untouched(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == PRECIOUS
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    target, link = precious(tmp_path), tmp_path / "lock"
    link.symlink_to(target)
    monkeypatch.setenv("PACELINE_LOCK", str(link))

    with (
        pytest.raises(SiteError, match="symbolic link") as caught,
        machine_lock(lambda _: None, link if by == "argument" else None),
    ):
        pass
    assert_untouched(target)
    assert "PACELINE_LOCK" in (caught.value.hint or "")


def test_a_link_to_nothing_makes_no_file(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "made")

    with pytest.raises(SiteError, match="symbolic link"):
        hold(tmp_path / "lock")
    assert not (tmp_path / "made").exists()


def test_a_second_name_of_another_file_is_refused(tmp_path: Path) -> None:
    target = precious(tmp_path)
    os.link(target, tmp_path / "lock")

    with pytest.raises(SiteError, match="other hard links"):
        hold(tmp_path / "lock")
    assert_untouched(target)


def test_a_file_with_other_content_is_not_overwritten(tmp_path: Path) -> None:
    target = precious(tmp_path)

    with pytest.raises(SiteError, match="not a lock of Paceline"):
        hold(target)
    assert_untouched(target)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["pipe", "folder"])
def test_what_is_no_plain_file_is_refused(tmp_path: Path, make: object) -> None:
    make(tmp_path / "lock")  # type: ignore[operator]

    with pytest.raises(SiteError) as caught:
        hold(tmp_path / "lock")
    assert str(tmp_path / "lock") in caught.value.message


def test_a_lock_is_made_for_all_users_and_held_again(tmp_path: Path) -> None:
    for _ in range(2):
        hold(tmp_path / "lock")

    assert (tmp_path / "lock").read_text(encoding="ascii") == f"{os.getpid()}\n"
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o666
