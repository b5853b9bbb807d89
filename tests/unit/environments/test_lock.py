import pytest

from paceline.environments.lock import Pin, lock_digest, parse_lock
from paceline.errors import SpecError

LOCK = """
# the main package
torch==2.13.0+cpu ; sys_platform == 'linux'
torch==2.13.0 ; sys_platform == 'darwin'
Typing_Extensions==4.16.0   # normalized
"""


def test_each_line_is_a_pin_with_a_normalized_name():
    assert parse_lock(LOCK, "lock") == (
        Pin(name="torch", version="2.13.0+cpu", marker="sys_platform == 'linux'"),
        Pin(name="torch", version="2.13.0", marker="sys_platform == 'darwin'"),
        Pin(name="typing-extensions", version="4.16.0"),
    )


@pytest.mark.parametrize(
    "sys_platform, machine, expected",
    [("linux", "x86_64", True), ("linux", "aarch64", False), ("darwin", "x86_64", False)],
)
def test_marker_chooses_the_platform(sys_platform, machine, expected):
    pin = Pin(name="a", version="1", marker="sys_platform == 'linux' and platform_machine != 'aarch64'")

    assert pin.applies({"sys_platform": sys_platform, "platform_machine": machine}) is expected


@pytest.mark.parametrize(
    "line", ["torch", "torch>=2", "-r other.txt", "torch==2.*", "torch @ file:///x.whl", "--index-url x"]
)
def test_line_that_pins_nothing_is_refused_with_its_number(line):
    with pytest.raises(SpecError, match=r"some\.lock:2: .* is not a pin"):
        parse_lock(f"numpy==2.4.6\n{line}\n", "some.lock")


def test_marker_that_is_not_understood_is_refused():
    with pytest.raises(SpecError, match="python_version"):
        parse_lock("a==1 ; python_version < '3.9'", "lock")


def test_distribution_pinned_twice_is_refused():
    with pytest.raises(SpecError, match="'a-b' is pinned twice"):
        parse_lock("a_b==1\nA.B==2", "lock")


def test_digest_changes_with_a_pin_or_the_python():
    digest = lock_digest(parse_lock("a==1\nb==2", "lock"), "3.11")

    assert digest != lock_digest(parse_lock("a==1\nb==3", "lock"), "3.11")
    assert digest != lock_digest(parse_lock("a==1\nb==2", "lock"), "3.10")


def test_digest_does_not_change_with_comments_or_order():
    assert lock_digest(parse_lock("a==1\nb==2", "lock"), "3.11") == lock_digest(
        parse_lock("# why\nb==2\n\nA == 1  # because", "lock"), "3.11"
    )
