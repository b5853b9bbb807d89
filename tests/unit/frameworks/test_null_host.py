"""The host half of the null framework: knobs, processes, the closed form."""

import subprocess
import sys
from pathlib import Path

import pytest

from paceline.errors import SpecError
from paceline.frameworks import load_framework
from paceline.frameworks.null import KNOBS, NULL, law_step_s

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "null.md"


def knobs(**changed):
    return {name: knob.default for name, knob in KNOBS.items()} | changed


def test_null_is_found_by_name():
    assert load_framework("null") is NULL


def test_null_runs_in_the_hosts_own_interpreter_without_weights():
    assert NULL.environment is None
    assert NULL.package is None
    assert not NULL.needs_weights


def test_every_default_fits_its_own_knob():
    for name, knob in KNOBS.items():
        if knob.default is not None:
            assert knob.parse(knob.default) == knob.default, name


def test_quantities_are_written_with_units():
    assert KNOBS["compute_s"].parse("20ms") == pytest.approx(0.020)
    assert KNOBS["bucket_bytes"].parse("25MiB") == 25 * 2**20
    assert KNOBS["message_bytes"].parse("1kB") == 1000.0
    assert KNOBS["alpha_s"].parse("10us") == pytest.approx(1e-5)


@pytest.mark.parametrize(
    "name, value",
    [
        ("compute_s", -1.0),
        ("overlap", 1.5),
        ("jitter_correlation", 1.0),
        ("slow_rank", -2),
        ("fault", "explode"),
        ("time", "wall"),
        ("bucket_bytes", "0B"),
        ("input_overlap", 1),
    ],
)
def test_impossible_values_are_refused(name, value):
    with pytest.raises(ValueError, match="should be"):
        KNOBS[name].parse(value)


def test_law_time_is_marked_simulated():
    assert NULL.capabilities.simulated(knobs(time="law"))
    assert not NULL.capabilities.simulated(knobs())


def test_data_parallel_means_allreduce():
    assert NULL.capabilities.resolve_strategy("data-parallel", "here") == "allreduce"
    assert NULL.capabilities.strategies["allreduce"].strategy_class == "exact"
    assert NULL.capabilities.strategies["single"].max_workers == 1
    with pytest.raises(SpecError):
        NULL.capabilities.resolve_strategy("ddp", "here")


def test_host_half_does_not_import_the_worker():
    # In a process of its own: other tests of this one import the worker.
    program = "import sys; import paceline.frameworks.null; print('paceline_worker' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert shown.stdout.strip() == "False"


def test_reference_names_every_knob_and_fault():
    text = REFERENCE.read_text(encoding="utf-8")

    missing = [name for name in [*KNOBS, *KNOBS["fault"].choices] if f"`{name}`" not in text]
    assert missing == []


def test_default_law_is_fifty_milliseconds_alone():
    truth = law_step_s(knobs(), 1, 32, 1e6)

    assert truth["step_s"] == pytest.approx(0.050, abs=1e-15)
    assert truth["exchange_s"] == 0
    assert truth["efficiency"] == 1


def test_efficiency_is_what_the_exchange_leaves():
    truth = law_step_s(knobs(alpha_s=0.0, message_bytes=1e6, beta_s_per_byte=5e-8), 2, 32, 0)

    assert truth["exchange_s"] == pytest.approx(0.050)
    assert truth["efficiency"] == pytest.approx(0.5)


def test_parts_of_the_closed_form_add_up():
    truth = law_step_s(knobs(slow_rank=1, slow_factor=1.3, overlap=0.2), 4, 32, 4e6)
    parts = ("data_s", "compute_s", "communication_s", "update_s", "overhead_s")

    assert sum(truth[part] for part in parts) == pytest.approx(truth["step_s"])
