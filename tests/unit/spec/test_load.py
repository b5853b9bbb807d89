from __future__ import annotations

from pathlib import Path

import pytest

from paceline.errors import SpecError
from paceline.spec import Network, Repeats, load_study, read_study

MINIMAL = {
    "study": {"name": "s"},
    "workload": {"model": "mlp", "batch_per_worker": 8},
    "framework": {"name": "null"},
}


STUDY_TEXT = """\
[study]
name = "s"
[workload]
model = "mlp"
batch_per_worker = 8
[framework]
name = "null"
"""


def changed(section: str, **keys: object) -> dict[str, dict[str, object]]:
    return {**MINIMAL, section: {**MINIMAL.get(section, {}), **keys}}


def test_defaults_of_the_cluster_are_one_local_worker_with_one_thread() -> None:
    study = read_study(MINIMAL)

    assert study.axes["cluster.site"] == ("local",)
    assert study.axes["cluster.hosts"] == (1,)
    assert study.axes["cluster.workers_per_host"] == (1,)
    assert study.axes["cluster.threads_per_worker"] == (1,)


def test_plain_value_is_fixed_and_list_is_an_axis() -> None:
    study = read_study(changed("cluster", workers_per_host=[1, 2], threads_per_worker=2))

    assert study.axes["cluster.workers_per_host"] == (1, 2)
    assert study.axes["cluster.threads_per_worker"] == (2,)


def test_repeated_value_of_an_axis_counts_once() -> None:
    assert read_study(changed("cluster", workers_per_host=[2, 2])).axes["cluster.workers_per_host"] == (2,)


def test_tables_named_after_framework_and_model_are_kept_for_the_plan() -> None:
    study = read_study(changed("framework", null={"compute": ["1ms", "2ms"]}))

    assert study.knobs == {"null": {"compute": ("1ms", "2ms")}}


def test_network_takes_units_and_presets() -> None:
    study = read_study(changed("cluster", network=[{"bandwidth": "1Gbit", "latency": "200us"}, "10GbE"]))

    assert study.axes["cluster.network"] == (
        Network(bandwidth_bytes_per_s=125e6, latency_s=pytest.approx(200e-6)),
        Network(preset="10GbE", bandwidth_bytes_per_s=1.25e9),
    )


def test_adaptive_repeats_have_bounds_and_a_goal() -> None:
    study = read_study(changed("measure", repeats={"min": 3, "max": 12, "until": "2%"}))

    assert study.repeats == Repeats(minimum=3, maximum=12, until=0.02)


def scripted(**more: object) -> dict[str, object]:
    return {"study": {"name": "s"}, "workload": {"script": "train.py", "batch_per_worker": 8, **more}}


def test_script_needs_no_framework_and_lists_of_arguments_are_an_axis() -> None:
    study = read_study(scripted(arguments=["--a 1", "--a 2"]), source="folder/s.toml")

    assert study.axes["framework.name"] == ("script",)
    assert study.axes["workload.arguments"] == ("--a 1", "--a 2")
    assert study.folder == Path("folder")


@pytest.mark.parametrize("arguments", ["{seed}", '--json \'{"a": {"b": 1}}\'', "--name {{epoch}}", "{} {0} { a }"])
def test_braces_that_are_no_unknown_name_are_left_alone(arguments: str) -> None:
    assert read_study(scripted(arguments=arguments)).axes["workload.arguments"] == (arguments,)


def test_environment_of_a_framework_may_stand_in_its_own_table() -> None:
    data = {**MINIMAL, "framework": {"name": ["null", "torch"], "torch": {"environment": "torch-old", "compile": True}}}
    study = read_study(data)

    assert study.environments == {"torch": "torch-old"}
    assert study.knobs == {"torch": {"compile": (True,)}}


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        ({**MINIMAL, "cluter": {}}, "unknown key 'cluter'", "did you mean 'cluster'?"),
        (
            changed("measure", warmup_step=3),
            "unknown key 'measure.warmup_step'",
            "did you mean 'warmup_steps'?",
        ),
        (changed("workload", batch_per_worker="32"), "workload.batch_per_worker", "weak scaling"),
        (changed("workload", batch_per_worker=0), "at least 1", "weak scaling"),
        (changed("workload", batch_global=8), "exclude each other", "strong scaling"),
        (changed("measure", time_limit="5 parsecs"), "'parsecs'", "10min"),
        (changed("measure", time_limit="5MB"), "takes one of ns", "10min"),
        (changed("measure", time_limit=300), "has no unit", "10min"),
        (changed("cluster", network={"bandwidth": "200us"}), "takes one of bit", "bandwidth"),
        (changed("cluster", network={"speed": "1Gbit"}), "unknown key 'speed'", "bandwidth"),
        (changed("cluster", device="gpu"), "one of cpu, cuda", "compute on"),
        (changed("cluster", workers_per_host=[]), "empty list", "at least one"),
        (changed("measure", steps=[1, 2]), "cannot be an axis", "one value"),
        (changed("measure", repeats={"min": 5, "max": 3, "until": "2%"}), "min <= max", "repeats = 5"),
        (changed("measure", repeats="many"), "does not fit", "repeats = 5"),
        (changed("study", name="a b"), "does not fit", "letters"),
        ({"study": {"name": "s"}, "framework": {"name": "null"}}, "workload.model: is missing", "add it"),
        (changed("workload", script="train.py"), "model and script exclude each other", "one study for each"),
        (changed("workload", arguments="--fast"), "belongs to a script", "[workload.MODEL]"),
        (scripted(arguments=["--a", "'open"]), "cannot be split into words", "as one text"),
        (scripted(arguments=[["--a"]]), "should be a text in quotes", "as one text"),
        (
            scripted(arguments=["--b {workers}", "--b {batch_size}"]),
            "nothing fills in {batch_size};",
            "{batch_per_worker}",
        ),
        (
            changed("framework", environment="torch-cpu", interpreter="/usr/bin/python3"),
            "interpreter and environment exclude each other",
            "keep the environment",
        ),
        (changed("framework", name=["null", "torch"], environment="x"), "one environment cannot serve 2", "under each"),
    ],
)
def test_wrong_study_says_where_and_what_to_write(data: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_study(data, source="s.toml")

    assert caught.value.message.startswith("s.toml: ")
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such study file"):
        load_study(tmp_path / "absent.toml")


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("[study\nname = 1")
    with pytest.raises(SpecError, match="line 1"):
        load_study(path)


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[3] / "studies").glob("*.toml")), ids=lambda p: p.stem)
def test_every_shipped_study_loads(path: Path) -> None:
    assert load_study(path).question.endswith("?")


def test_network_is_given_by_its_bandwidth_alone() -> None:
    study = read_study(changed("cluster", network=["150Mbit", "1.5 Gbit/s", "100Mbit"]))

    assert study.axes["cluster.network"] == (
        Network(bandwidth_bytes_per_s=18.75e6),
        Network(bandwidth_bytes_per_s=187.5e6),
        Network(preset="100Mbit", bandwidth_bytes_per_s=12.5e6),
    )


def test_bandwidth_as_text_and_as_table_is_the_same_network() -> None:
    text, table = (
        read_study(changed("cluster", network=network)).axes["cluster.network"]
        for network in ("150Mbit", {"bandwidth": "150Mbit"})
    )

    assert text == table
    assert text[0].to_json() == table[0].to_json()
    assert text[0].label == "150Mbit"


@pytest.mark.parametrize(
    ("network", "words"),
    [("0Gbit", "above zero"), ("-1Mbit", "above zero"), ("fast Mbit", "not a number"), ("150Mbits", "such as 150Mbit")],
)
def test_bandwidth_that_is_none_is_refused(network: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        read_study(changed("cluster", network=network))


def test_unknown_network_names_the_nearest() -> None:
    with pytest.raises(SpecError, match="did you mean '10GbE'"):
        read_study(changed("cluster", network="10Gbe"))


def test_jitter_is_not_above_the_latency() -> None:
    with pytest.raises(SpecError, match="jitter"):
        read_study(changed("cluster", network={"latency": "1ms", "jitter": "2ms"}))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x7fELF\x02\x01\x00\x00\x89", "is no text"),
        (b"\x89PNG\r\n\x1a\n\x00", "is no text"),
        (STUDY_TEXT.encode("utf-16"), "UTF-16"),
        (STUDY_TEXT.encode("utf-16-le"), "UTF-16"),
        (STUDY_TEXT.replace("s", "é").encode("latin-1"), "is no text"),
        (b"", "is empty"),
        (b"\n  \n", "is empty"),
    ],
    ids=["program", "picture", "utf-16 with mark", "utf-16", "latin-1", "empty", "blank"],
)
def test_a_file_that_cannot_be_a_study_says_what_it_is_and_what_to_do(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(content)

    with pytest.raises(SpecError, match=expected) as caught:
        load_study(path)
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert "permissions" not in caught.value.hint


def test_a_folder_is_not_a_study(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(STUDY_TEXT, encoding="utf-8")

    with pytest.raises(SpecError, match="is a folder") as caught:
        load_study(tmp_path)
    assert "mine.toml" in (caught.value.hint or "")


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(STUDY_TEXT, encoding="utf-8-sig")

    assert load_study(path).name == "s"


def test_values_are_read_with_their_type() -> None:
    study = read_study(changed("cluster", hosts=[1, 2], network="1GbE"))

    assert study.values("cluster.hosts", int) == (1, 2)
    assert study.single("measure.time_limit", float) == 900.0
    assert study.optional_values("measure.memory_limit", float) == (None,)
    assert [network.preset for network in study.values("cluster.network", Network)] == ["1GbE"]


def test_a_value_of_another_type_than_the_catalogue_has_is_a_defect() -> None:
    study = read_study(MINIMAL)

    with pytest.raises(AssertionError, match="should all be int"):
        study.values("framework.name", int)
    with pytest.raises(AssertionError, match="should all be str"):
        study.values("workload.script", str)
