"""A study that tries a trial runs just that trial."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advice import catalog, study_of, trial_of
from paceline.plan import expand
from paceline.prepared import PreparedStudy
from paceline.recommend.experiment import axes_of, experiment, fitting, trials_of
from paceline.spec import Network, Repeats, load_study, parse_study, read_study

STUDIES = Path(__file__).parents[3] / "studies"
EVERY = 7
"""Of the larger studies not every trial is looked at."""


@pytest.mark.parametrize(
    "name",
    [
        "null",
        "quickstart",
        "dilation",
        "exposed",
        "interconnect",
        "frameworks",
        "predict/resnet44",
        "predict/frameworks",
    ],
)
def test_every_trial_of_a_study_of_ours_is_tried_alone(name, tmp_path):
    study = load_study(STUDIES / f"{name}.toml")
    where = PreparedStudy.of(study).catalog
    trials = [one.trial for one in expand(study, where)]
    for trial in trials[:: EVERY if len(trials) > 20 else 1]:
        alone = parse_study(experiment(study, [trial], where), source=study.source)

        assert [one.trial.id for one in expand(alone, where)] == [trial.id]
        assert alone.name == f"{study.name}-try"


def test_knobs_that_were_not_in_the_study_are_tried(tmp_path):
    study = read_study(
        {
            "study": {"name": "s"},
            "workload": {"model": "mlp", "batch_global": 8},
            "framework": {"name": "torch", "torch": {"overlap": [True, False], "compile": True}},
            "cluster": {"site": "lab", "hosts": [1, 2], "network": {"bandwidth": "40Mbit"}, "lab": {"core_share": 0.5}},
            "measure": {"seed": [3, 4]},
        }
    )
    where = PreparedStudy.of(study).catalog
    for one in expand(study, where):
        other = replace(
            one.trial,
            framework=replace(one.trial.framework, knobs={**one.trial.framework.knobs, "bucket_bytes": 2.0**21}),
        )
        again = parse_study(experiment(study, [other], where), source=study.source)

        assert [found.trial.id for found in expand(again, where)] == [other.id]


def test_what_should_settle_something_is_run_often_enough():
    study = study_of([trial_of()])
    once = replace(study, axes={**study.axes, "measure.repeats": (Repeats(minimum=1, maximum=1),)})
    often = replace(study, axes={**study.axes, "measure.repeats": (Repeats(minimum=5, maximum=9, until=0.1),)})

    assert parse_study(experiment(once, [trial_of()], catalog()), source="s").repeats.minimum == 3
    assert parse_study(experiment(often, [trial_of()], catalog()), source="s").repeats == Repeats(minimum=5, maximum=5)


def joined(*trials, most=3):
    return fitting(study_of(trials), trials, catalog(hosts=8), most)


def test_trials_of_one_line_fit_together():
    line = [trial_of(workers=workers) for workers in (8, 4, 2, 1)]

    assert joined(*line) == line[:3]


def test_what_would_multiply_out_to_more_is_left_for_later():
    first, across, along = trial_of(workers=8, batch=16), trial_of(workers=4, batch=8), trial_of(workers=4, batch=16)

    assert joined(first, across, along) == [first, along]
    assert joined(first, across, most=4) == [first, across]


def test_a_default_and_another_value_of_a_knob_cannot_stand_in_one_file():
    plain, bucketed = trial_of(), trial_of({"bucket_bytes": 1e6})

    assert joined(plain, bucketed) == [plain]
    assert joined(bucketed, trial_of({"bucket_bytes": 2e6})) == [bucketed, trial_of({"bucket_bytes": 2e6})]


def test_a_host_alone_goes_with_hosts_on_a_network():
    network = Network(preset="1GbE", bandwidth_bytes_per_s=1.25e8)
    alone, four = trial_of(workers=1, hosts=1), trial_of(workers=4, hosts=4, network=network)

    assert joined(alone, four) == [alone, four]


def test_knobs_of_one_framework_do_not_multiply_the_trials_of_another():
    study = study_of([trial_of(), trial_of(framework="jax", environment="jax")])
    one, two = axes_of(trial_of({"overlap": False}), study, catalog()), axes_of(trial_of(), study, catalog())
    both = {key: (*one[key], *two[key]) if one[key] != two[key] else one[key] for key in one}

    assert trials_of(one) == 1
    # One of the two values is the default, which a file cannot name.
    assert trials_of(both) == 1
    assert trials_of({**one, "framework.name": ("torch", "jax"), "framework.torch.hook": ("none", "fp16")}) == 3
