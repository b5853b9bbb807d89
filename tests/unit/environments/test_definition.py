import re

import pytest

from paceline.environments import known_environments, load_environment, read_definition
from paceline.environments.definition import Definition
from paceline.errors import SpecError

TOML = """
name = "tiny"
description = "One small package"
python = "3.11"
package = "tiny"
lock = "requirements.lock"
disk_bytes = 1_000_000
forbidden = ["nvidia-*"]
"""


def write(folder, toml=TOML, lock="tiny==1.0\n"):
    folder.mkdir(parents=True)
    (folder / "environment.toml").write_text(toml)
    (folder / "requirements.lock").write_text(lock)
    return folder


def test_definition_is_read_with_its_lock(tmp_path):
    definition = read_definition(write(tmp_path / "tiny"))

    assert isinstance(definition, Definition)
    assert definition.packages == {"tiny": "1.0"}
    assert definition.forbids("NVIDIA_cublas")
    assert not definition.forbids("numpy")


@pytest.mark.parametrize(
    "change, message",
    [
        (("python =", "pyton ="), "unknown key 'pyton'"),
        (('python = "3.11"', ""), "'python' is missing"),
        (('"3.11"', '"three"'), "python: 'three' does not fit"),
        (("1_000_000", '"1 MB"'), "disk_bytes: '1 MB' does not fit"),
        (('name = "tiny"', 'name = "other"'), "'other' is not the folder's"),
        (('package = "tiny"', 'package = "large"'), "does not pin 'large'"),
        (("requirements.lock", "absent.lock"), "absent.lock: cannot be read"),
        (("[", "[["), "not valid TOML"),
    ],
)
def test_definition_that_does_not_fit_is_refused_with_its_key(tmp_path, change, message):
    with pytest.raises(SpecError, match=re.escape(message)):
        read_definition(write(tmp_path / "tiny", TOML.replace(*change)))


def test_lock_must_not_pin_what_is_forbidden(tmp_path):
    with pytest.raises(SpecError, match=r"pins 'nvidia-cublas', which environment\.toml forbids"):
        read_definition(write(tmp_path / "tiny", lock="tiny==1.0\nnvidia_cublas==12\n"))


def test_unknown_environment_names_the_nearest():
    with pytest.raises(SpecError) as caught:
        load_environment("torch-cpus")

    assert "did you mean 'torch-cpu'?" in caught.value.hint


def test_folder_of_the_user_adds_environments(tmp_path):
    folder = write(tmp_path / "mine" / "tiny")

    assert known_environments({"PACELINE_ENVIRONMENTS": str(tmp_path / "mine")})["tiny"] == folder


def test_shipped_locks_are_complete_and_can_never_be_a_cuda_build():
    for folder in known_environments({}).values():
        definition = read_definition(folder)
        assert "numpy" in {pin.name for pin in definition.pins}
        for pin in definition.pins:
            if pin.name == "torch" and "darwin" not in (pin.marker or ""):
                assert pin.version.endswith("+cpu")
