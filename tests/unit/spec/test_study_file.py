"""A study that is written reads back to the same study, and with other keys to the trials that they ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from paceline.prepared import PreparedStudy
from paceline.spec import Network, Repeats, Study, load_study, parse_study, read_study, study_text

ROOT = Path(__file__).parents[3]
STUDIES = sorted([*(ROOT / "studies").rglob("*.toml"), *(ROOT / "examples").rglob("*.toml")])

RICH = {
    "study": {"name": "rich", "question": 'Is "it" read back, with ü and \\?'},
    "workload": {
        "model": ["mlp", "my model.py"],
        "batch_per_worker": [4, 8],
        "input": "pipeline",
        "loader_workers": [0, 2],
        "mlp": {"hidden": [64, 128], "steps": 7, "repeats": 2, "network": ["1GbE", {"bandwidth": "40Mbit"}]},
        "my model.py": {"depth": 3, "batch_per_worker": 2},
    },
    "framework": {
        "name": ["torch", "jax"],
        "strategy": ["data-parallel", "single"],
        "torch": {"bucket_bytes": ["5MB", 1e6], "overlap": True, "interpreter": "/opt/python"},
        "jax": {"environment": "jax-cpu"},
    },
    "cluster": {
        "site": "lab",
        "hosts": [1, 2],
        "threads_per_worker": 2,
        "oversubscribe": True,
        "network": ["10GbE", {"bandwidth": "123456789bit", "latency": "17us", "jitter": "3us"}, "WAN"],
        "lab": {"core_share": 0.5, "dilation": [1, 2]},
    },
    "measure": {
        "repeats": {"min": 3, "max": 12, "until": "7%"},
        "seed": [0, 1],
        "time_limit": "7min",
        "memory_limit": "3GiB",
        "layers": True,
    },
}


def written(study: Study, axes: dict[str, object] | None = None) -> Study:
    return parse_study(
        study_text(study, name=study.name, question=study.question, axes=axes or {}), source=study.source
    )


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_study_of_ours_reads_back_as_it_was(path):
    study = load_study(path)

    assert written(study) == study


def test_whatever_a_study_may_say_reads_back_as_it_was():
    study = read_study(RICH)

    assert written(study) == study


def test_a_script_reads_back_as_it_was():
    study = read_study(
        {
            "study": {"name": "s"},
            "workload": {"script": "train.py", "arguments": "--batch {batch_global}", "batch_global": 8},
        }
    )

    assert written(study) == study


def test_the_only_framework_keeps_its_interpreter():
    study = read_study(
        {
            "study": {"name": "s"},
            "workload": {"model": "mlp", "batch_per_worker": 1},
            "framework": {"name": "torch", "interpreter": "/opt/python"},
        }
    )

    assert written(study) == study


def test_other_values_replace_those_of_the_study_and_of_its_models():
    study = read_study(RICH)
    changed = written(
        study,
        {
            "workload.model": "mlp",
            "workload.batch_per_worker": (16, 32),
            "workload.mlp.hidden": 256,
            "framework.name": ["torch"],
            "framework.torch.bucket_bytes": 2.5e6,
            "framework.torch.overlap": None,
            "cluster.network": Network(bandwidth_bytes_per_s=1.25e7, latency_s=1e-5),
            "cluster.hosts": 2,
            "cluster.lab.dilation": 4,
            "measure.repeats": Repeats(minimum=5, maximum=5),
            "measure.time_limit": 60.0,
        },
    )

    assert changed.values("workload.batch_per_worker", int, "mlp") == (16, 32)
    assert changed.model_options == {"mlp": {"hidden": (256,)}}
    assert changed.of_models == {"mlp": {"measure.steps": (7,)}}
    assert changed.knobs == {"torch": {"bucket_bytes": (2.5e6,)}}
    assert changed.interpreters == {"torch": "/opt/python"}
    assert changed.environments == {}
    assert changed.axes["cluster.network"] == (Network(bandwidth_bytes_per_s=1.25e7, latency_s=1e-5),)
    assert changed.site_options == {"lab": {"core_share": (0.5,), "dilation": (4,)}}
    assert changed.repeats == Repeats(minimum=5, maximum=5)
    assert changed.axes["measure.time_limit"] == (60.0,)
    assert changed.axes["measure.seed"] == (0, 1)


def test_strong_scaling_becomes_weak_where_the_other_batch_is_left_out():
    study = read_study(
        {
            "study": {"name": "s"},
            "workload": {"model": "mlp", "batch_global": 8},
            "framework": {"name": "null"},
        }
    )
    changed = written(study, {"workload.batch_global": None, "workload.batch_per_worker": 4})

    assert (changed.axes["workload.batch_global"], changed.axes["workload.batch_per_worker"]) == ((None,), (4,))


@pytest.mark.parametrize("name", ["null", "quickstart", "scaling", "dilation", "exposed", "interconnect"])
def test_trials_are_the_same(name, tmp_path):
    study = load_study(ROOT / "studies" / f"{name}.toml")

    assert trials(written(study), tmp_path) == trials(study, tmp_path)


def trials(study: Study, folder: Path) -> list[str]:
    return [one.trial.id for one in PreparedStudy.of(study).expanded]


def test_the_name_and_the_question_are_the_new_ones():
    study = read_study(RICH)
    again = parse_study(study_text(study, name="other", question="", axes={}), source=study.source)

    assert (again.name, again.question) == ("other", "")
    assert replace(again, name=study.name, question=study.question, axes=study.axes) == study
