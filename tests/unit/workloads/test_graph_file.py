"""A user's own graph file: what it gives, and that whatever is wrong in it is told with file and line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from paceline.errors import SpecError
from paceline.workloads import load_workload

HEAD = """\
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd

"""
GOOD = """\
def graph(*, hidden: int = 8, sizes: tuple[int, ...] = ()) -> Graph:
    net = GraphBuilder("own", Input(kind="vector", shape=(4,), classes=2))
    x = net.linear("hidden", INPUT, features=hidden)
    for number, size in enumerate(sizes):
        x = net.linear(f"more{number}", x, features=size)
    net.loss(net.linear("head", x, features=2))
    return net.build(Sgd(learning_rate=0.1))
"""


def written(folder: Path, text: str, name: str = "model.py") -> str:
    (folder / name).write_text(HEAD + text, encoding="utf-8")
    return name


def test_file_gives_a_graph_and_options_change_it(tmp_path: Path) -> None:
    name = written(tmp_path, GOOD)
    plain, wide = load_workload(name, {}, tmp_path), load_workload(name, {"hidden": 16, "sizes": [3]}, tmp_path)

    assert plain.num_parameters == 4 * 8 + 8 + 8 * 2 + 2
    assert wide.num_parameters == 4 * 16 + 16 + 16 * 3 + 3 + 3 * 2 + 2
    assert plain.hash != wide.hash


def test_same_graph_from_another_file_has_the_same_hash(tmp_path: Path) -> None:
    one = load_workload(written(tmp_path, GOOD), {}, tmp_path)
    other = load_workload(written(tmp_path, "# a word more\n" + GOOD, "again.py"), {}, tmp_path)

    assert one.hash == other.hash


def test_file_may_import_what_lies_beside_it_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "blocks_beside.py").write_text("WIDTH = 5\n", encoding="utf-8")
    text = "from blocks_beside import WIDTH\n" + GOOD.replace("features=hidden", "features=WIDTH")
    path = list(sys.path)

    assert load_workload(written(tmp_path, text), {}, tmp_path).layer("hidden").shape == (5,)
    assert "blocks_beside" not in sys.modules
    assert sys.path == path


@pytest.mark.parametrize("place", ["project/.venv/lib/python3/site-packages", "project2"])
def test_only_modules_of_its_own_folder_are_imported_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    for folder in ("project", place):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / place / "installed_elsewhere.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / place))
    name = written(tmp_path / "project", "import installed_elsewhere\n" + GOOD)
    try:
        load_workload(name, {}, tmp_path / "project")

        assert "installed_elsewhere" in sys.modules
    finally:
        sys.modules.pop("installed_elsewhere", None)


def test_error_in_an_installed_package_is_told_with_the_line_that_called_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / ".venv" / "site-packages"
    packages.mkdir(parents=True)
    (packages / "raises_when_called.py").write_text("def call():\n    raise KeyError('x')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(packages))
    text = "import raises_when_called\nraises_when_called.call()\n"
    try:
        with pytest.raises(SpecError, match=r"model\.py, line 5: KeyError"):
            load_workload(written(tmp_path, text), {}, tmp_path)
    finally:
        sys.modules.pop("raises_when_called", None)


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ("def graph(:\n", "line 4: SyntaxError", "mend"),
        ("x = 1 / 0\n", "line 4: ZeroDivisionError", "try it"),
        ("import no_such_module_here\n", "line 4: ModuleNotFoundError", "try it"),
        ("raise SystemExit('away')\n", "line 4: SystemExit: away", "try it"),
        ("def model(): ...\n", "no function graph()", "def graph"),
        ("def graph(hidden): ...\n", "line 4: option 'hidden' of graph() needs a type", "def graph(*, hidden: int"),
        (
            "def graph(*, hidden=3): ...\n",
            "line 4: option 'hidden' of graph() needs a type",
            "def graph(*, hidden: int",
        ),
        ("def graph() -> Graph:\n    return {}\n", "returned dict, not a graph", "how-to/your-own-model"),
        (GOOD.replace("return net.build(Sgd(learning_rate=0.1))", "return net"), "returned the builder", "net.build"),
        (GOOD.replace("features=2))", "features=3))"), "line 9", ""),
        (GOOD.replace('"head", x', '"head", "nowhere"'), "line 9", ""),
    ],
)
def test_what_is_wrong_in_the_file_is_told_with_its_line(tmp_path: Path, text: str, told: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_workload(written(tmp_path, text), {}, tmp_path)

    assert caught.value.message.startswith(str(tmp_path / "model.py"))
    assert told in caught.value.message
    assert hint in (caught.value.hint or "")


def test_unknown_option_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"graph\(\) of model.py has no option 'hiden'") as caught:
        load_workload(written(tmp_path, GOOD), {"hiden": 3}, tmp_path)

    assert "hidden" in (caught.value.hint or "")


def test_missing_file_says_where_files_are_looked_for(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nothing\.py: no such file") as caught:
        load_workload("nothing.py", {}, tmp_path)

    assert "relative to the study file" in (caught.value.hint or "")
