"""What other tools measured is kept, and speaks to the calibration of a study."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from paceline.errors import PacelineError, StoreError
from paceline.model.equations.conditions import Conditions
from paceline.model.equations.exchange import collective_s
from paceline.model.equations.parameters import as_vector
from paceline.model.equations.stack import stack_of
from paceline.model.equations.stragglers import ALIKE
from paceline.model.equations.terms import step_terms
from paceline.model.fitting.fit import family_of, fit
from paceline.model.fitting.observe import Training
from paceline.model.fitting.problem import Evidence
from paceline.model.foreign.imported import (
    KINDS,
    ImportContext,
    add_import,
    imports_path,
    read_import,
    read_imports,
    recognised,
    with_imports,
)
from records import make_trial

TRUTH = as_vector(
    {
        "forward_s": 2e-3,
        "forward_per_sample_s": 1e-3,
        "backward_s": 4e-3,
        "backward_per_sample_s": 2e-3,
        "update_s": 3e-3,
        "overhead_s": 1e-3,
        "alpha_s": 2e-4,
        "byte_s": 2e-9,
        "start": 1.0,
    }
)
SIZES = [4096.0 * 4**power for power in range(8)]
LAYERS = "Id,Name,Forward,Backward,Comm,Size\n0,conv,1,30,5,400\n1,relu,1,10,0,0\n2,fc,1,60,9,4000\n"
KINETO = json.dumps(
    {
        "traceEvents": [
            {"ph": "X", "name": "ProfilerStep#1", "pid": 0, "tid": 0, "ts": 0, "dur": 100},
            {"ph": "X", "name": "aten::conv", "pid": 0, "tid": 0, "ts": 0, "dur": 60},
            {"ph": "X", "name": "gloo:all_reduce", "pid": 0, "tid": 7, "ts": 40, "dur": 50},
        ]
    }
)


def osu_text(workers: int) -> str:
    """As OSU would print what the truth takes."""
    asked = Conditions(workers=workers, hosts=1, batch=1.0, messages=tuple(SIZES))
    (seconds,) = collective_s(TRUTH[None, :], stack_of([asked]), "all_reduce")[0]
    rows = [f"{size:.0f}  {time * 1e6:.4f}" for size, time in zip(SIZES, seconds, strict=True)]
    return "\n".join(["# OSU MPI Allreduce Latency Test v5.8", "# Size  Avg Latency(us)", *rows])


def training(workers: int, batch: int) -> Training:
    asked = Conditions(workers=workers, hosts=1, batch=float(batch), messages=(2.6e6,))
    terms = step_terms(TRUTH, asked)
    return Training(
        trial=make_trial(workers=workers, batch=batch),
        conditions=asked,
        steps_s=(terms.step_s,) * 3,
        phases=terms.phases(),
        derived=False,
        straggling=ALIKE,
        peak_rss_bytes=None,
    )


def evidence(*trainings: Training) -> Evidence:
    return Evidence(family=family_of(trainings[0].trial, "here"), trainings=trainings)


@pytest.mark.parametrize(
    ("text", "kind"),
    [(osu_text(2), "osu"), (LAYERS, "layers"), (KINETO, "kineto"), ("#  size  time  algbw  busbw\n", "nccl-tests")],
)
def test_a_file_is_known_by_what_is_in_it(text, kind):
    assert recognised(text) == kind


def test_a_file_that_nobody_knows_is_refused_with_the_kinds():
    with pytest.raises(PacelineError) as error:
        recognised("hello\n")
    assert all(kind in error.value.hint for kind in KINDS)


def test_the_command_line_knows_the_same_kinds():
    assert import_module("paceline.cli.import_").KINDS == KINDS


def test_latency_and_bandwidth_come_from_an_imported_table():
    alone = evidence(training(1, 4), training(1, 16))
    table = read_import(osu_text(4), file="osu.txt", kind=None, setting=ImportContext(workers=4))
    parameters = fit(with_imports(alone, [table])).parameters()

    assert parameters["alpha_s"].value == pytest.approx(2e-4, rel=0.01)
    assert parameters["byte_s"].value == pytest.approx(2e-9, rel=0.01)


def test_ranks_that_a_table_does_not_tell_are_asked_for():
    with pytest.raises(PacelineError, match="number of ranks"):
        read_import(osu_text(2), file="osu.txt", kind=None, setting=ImportContext())


def test_an_operation_that_no_step_is_made_of_is_refused():
    text = osu_text(2).replace("Allreduce", "Broadcast")
    with pytest.raises(PacelineError, match="broadcast"):
        read_import(text, file="osu.txt", kind=None, setting=ImportContext(workers=2))


def test_a_profile_needs_its_workers_and_batch_and_becomes_a_step():
    with pytest.raises(PacelineError) as error:
        read_import(KINETO, file="trace.json", kind=None, setting=ImportContext(workers=2))
    assert "--batch" in error.value.hint

    step = read_import(KINETO, file="trace.json", kind=None, setting=ImportContext(workers=2, batch=8))
    extended = with_imports(evidence(training(1, 4)), [step])
    last = extended.trainings[-1]
    assert (last.conditions.workers, last.conditions.batch) == (2, 8)
    assert last.step_s == pytest.approx(100e-6)
    assert last.phases == {"communication": pytest.approx(30e-6)}


def test_layers_tell_when_gradients_are_ready():
    layers = read_import(LAYERS, file="layers.csv", kind=None, setting=ImportContext())
    extended = with_imports(evidence(training(1, 4)), [layers])

    assert extended.ready is not None
    assert extended.ready.bytes == (4000.0, 400.0)
    assert extended.ready.measured


def test_what_is_about_another_framework_is_left_out():
    table = read_import(osu_text(4), file="osu.txt", kind=None, setting=ImportContext(workers=4, framework="jax"))

    assert with_imports(evidence(training(1, 4)), [table]).collectives == ()


def test_imports_are_kept_and_the_same_file_only_once(tmp_path):
    table = read_import(osu_text(4), file="osu.txt", kind=None, setting=ImportContext(workers=4))
    add_import(tmp_path, "s", table)
    add_import(tmp_path, "s", table)

    assert read_imports(tmp_path, "s") == [table]
    assert read_imports(tmp_path, "other") == []


def test_damaged_imports_say_what_to_do(tmp_path):
    path = imports_path(tmp_path, "s")
    path.parent.mkdir()
    path.write_text("[{}]")

    with pytest.raises(StoreError) as error:
        read_imports(tmp_path, "s")
    assert "import again" in error.value.hint
