"""An unchanged PyTorch program: its steps and phases are found by hooks, and it still runs alone. The examples."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from paceline.record import Record
from paceline.spec import read_study
from paceline.spec.toml_file import read_toml
from paceline.workbench import Workbench
from torch_rig import Rig

EXAMPLES = Path(__file__).parents[3] / "examples"
PHASES = ["data", "forward", "backward", "communication", "update"]

AWKWARD = """\
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, *, x):
        return self.body(x)


net, other = Net(), nn.Linear(2, 1)
sgd, adam = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.Adam(other.parameters())
with torch.no_grad():
    net(x=torch.zeros(3, 8))  # a look before training
number = 0
while True:
    for part in range(2):  # gradient accumulation
        x = torch.randn(4, 8)
        hidden = net(x=x)
        loss = nn.functional.cross_entropy(hidden, (x[:, 0] > 0).long()) + other(hidden).pow(2).mean()
        (loss / 2).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    sgd.step()
    adam.step()
    sgd.zero_grad()
    adam.zero_grad()
    number += 1
    if number % 5 == 0:
        net.eval()
        with torch.no_grad():
            net(x=torch.randn(100, 8))
        net.train()
"""


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests measure nothing: they need not wait for whoever does."""
    monkeypatch.setenv("PACELINE_LOCK", str(tmp_path / "lock"))


def measured(study: Path, store: Path, **changed: dict[str, object]) -> list[Record]:
    """Run a study once, with some of its keys changed."""
    data = read_toml(study, kind="study", where="", form="")
    for section, keys in changed.items():
        data.setdefault(section, {}).update(keys)
    data["measure"].update({"repeats": 1, "warmup_steps": 2, "steps": 10})
    bench = Workbench(read_study(data, source=str(study)), store)
    bench.run()
    return bench.snapshot().records


def test_unchanged_example_is_measured_with_one_and_two_workers(rig: Rig, tmp_path: Path) -> None:
    records = measured(EXAMPLES / "own_script" / "study.toml", tmp_path)

    assert sorted(record.trial.workers for record in records) == [1, 2]
    for record in records:
        assert record.ok, record.outcome
        assert record.samples is not None
        assert [n.removeprefix("phase.") for n in record.samples.column_names if n.startswith("phase.")] == PHASES
        assert all(loss is not None for loss in record.samples["loss"].to_pylist())
        assert not {
            doubt.code for doubt in record.doubts if doubt.code.startswith(("impossible", "batch", "steps", "gaps"))
        }
        assert {rank.parameters for rank in record.ranks} == {64 * 256 + 256 + 256 * 10 + 10}
        assert {rank.facts["samples_per_step"] for rank in record.ranks} == {32}
        assert len({rank.facts["weights_sha256"] for rank in record.ranks}) == 1
        wrapped = "DistributedDataParallel" if record.trial.workers == 2 else "none"
        assert {rank.facts["wrapped"] for rank in record.ranks} == {wrapped}


def test_unchanged_example_runs_alone(rig: Rig) -> None:
    alone = {name: value for name, value in rig.env.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*rig.command, "train.py", "--epochs", "1"],
        cwd=EXAMPLES / "own_script",
        env=alone,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.startswith("epoch 0: loss ")


def test_accumulation_evaluation_and_two_optimizers_are_counted_as_documented(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(AWKWARD, encoding="utf-8")
    (tmp_path / "study.toml").write_text(
        '[study]\nname = "s"\n[workload]\nscript = "train.py"\nbatch_per_worker = 8\n'
        '[framework]\nenvironment = "torch-cpu"\n[measure]\n',
        encoding="utf-8",
    )
    (record,) = measured(tmp_path / "study.toml", tmp_path / "store")
    assert record.ok, record.outcome
    (rank,) = record.ranks
    assert record.samples is not None
    starts, walls = (record.samples[name].to_pylist() for name in ("start_s", "wall_s"))
    # Steps follow each other but where a block was written, and where the program evaluated, after its 5th and 10th.
    apart = {k for k in range(3, 12) if starts[k] - (starts[k - 1] + walls[k - 1]) > 1e-6}

    assert rank.facts["forwards_per_step"] == 2
    assert rank.facts["samples_per_step"] == 8
    assert rank.facts["optimizers"] == ["SGD", "Adam"]
    assert rank.parameters == 8 * 16 + 16 + 16 * 2 + 2 + 2 + 1
    assert rank.facts["evaluations"] == 2
    assert apart == {5, 10}


def test_own_graph_example_trains_in_pytorch_with_two_workers(rig: Rig, tmp_path: Path) -> None:
    (record,) = measured(
        EXAMPLES / "own_graph" / "study.toml",
        tmp_path,
        workload={"model.py": {"width": 4}},
        cluster={"workers_per_host": 2},
    )

    assert record.ok, record.outcome
    assert {rank.parameters for rank in record.ranks} == {record.inputs["parameters"]}
