"""Training programs in the shapes that others write them: what hooks read of models, data, samples and exchange."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from paceline.compare import compare
from paceline.model.fitting.observe import messages_of
from paceline.record import Record
from paceline.record.summary import summarize
from paceline.spec import read_study
from paceline.workbench import Workbench
from torch_rig import Rig

HEAD = """\
import os, time
import torch
from torch import nn
torch.manual_seed(0)
"""


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests measure nothing: they need not wait for whoever does."""
    monkeypatch.setenv("PACELINE_LOCK", str(tmp_path / "lock"))


def run(folder: Path, program: str, *, batch: int, workers: int = 1, **workload: Any) -> Record:
    """One run of 2 + 6 steps of a program."""
    (folder / "train.py").write_text(HEAD + dedent(program), encoding="utf-8")
    study = {
        "study": {"name": "shapes"},
        "workload": {"script": "train.py", "batch_per_worker": batch, **workload},
        "framework": {"environment": "torch-cpu"},
        "cluster": {"workers_per_host": workers, "oversubscribe": True},
        "measure": {"warmup_steps": 2, "steps": 6, "repeats": 1},
    }
    bench = Workbench(read_study(study, source=str(folder / "study.toml")), folder / "store")
    (record,) = bench.run()
    assert record.ok, record.outcome
    return record


def codes(record: Record) -> set[str]:
    return {doubt.code for doubt in record.doubts}


def seconds(record: Record, phase: str) -> float:
    summary = summarize(record)
    assert summary is not None
    return summary.phases[phase].seconds


def test_transform_that_is_a_module_does_not_end_the_phase_data(rig: Rig, tmp_path: Path) -> None:
    program = """\
    class Normalize(nn.Module):
        def forward(self, image):
            time.sleep(0.002)
            return (image - 0.5) / 0.3

    class Images(torch.utils.data.Dataset):
        normalize = Normalize()
        def __len__(self):
            return 4096
        def __getitem__(self, index):
            return self.normalize(torch.rand(1, 6, 6)), index % 3

    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    criterion = nn.CrossEntropyLoss()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for images, labels in torch.utils.data.DataLoader(Images(), batch_size=8):
        loss = criterion(net(images), labels)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    """
    record = run(tmp_path, program, batch=8)

    assert seconds(record, "data") > 8 * 0.002
    assert record.reported.samples_per_step == 8
    assert record.ranks[0].facts["forwards_per_step"] == 1
    assert "batch-samples" not in codes(record)


def test_frozen_model_before_the_trained_one_counts_as_forward_and_data_goes_on(rig: Rig, tmp_path: Path) -> None:
    program = """\
    class Teacher(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
        def forward(self, x):
            time.sleep(0.02)
            return self.layer(x)

    teacher, net = Teacher(), nn.Linear(4, 4)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        time.sleep(0.01)
        x = torch.randn(8, 4)
        with torch.no_grad():
            wanted = teacher(x)
        time.sleep(0.01)
        loss = (net(x) - wanted).pow(2).mean()
        loss.backward()
        sgd.step()
        sgd.zero_grad()
    """
    record = run(tmp_path, program, batch=8)

    assert seconds(record, "data") >= 0.02
    assert seconds(record, "forward") >= 0.02
    assert record.ranks[0].facts["evaluations"] == 0


def test_metric_and_parameterless_loss_between_steps_stay_in_data(rig: Rig, tmp_path: Path) -> None:
    program = """\
    class Accuracy(nn.Module):
        def forward(self, guesses, labels):
            time.sleep(0.01)
            return (guesses.argmax(1) == labels).float().mean()

    net, accuracy = nn.Linear(4, 3), Accuracy()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    guesses, y = torch.zeros(8, 3), torch.zeros(8).long()
    while True:
        accuracy(guesses, y)
        time.sleep(0.01)
        x, y = torch.randn(8, 4), torch.randint(3, (8,))
        guesses = net(x)
        nn.functional.cross_entropy(guesses, y).backward()
        sgd.step()
        sgd.zero_grad()
    """
    record = run(tmp_path, program, batch=8)

    assert seconds(record, "data") >= 0.02
    assert record.reported.samples_per_step == 8


SEQUENCE_FIRST = """\
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm, self.out = nn.Embedding(50, 8), nn.LSTM(8, 8), nn.Linear(8, 50)
        def forward(self, words, hidden):
            seen, hidden = self.lstm(self.embedding(words), hidden)
            return self.out(seen), hidden

    net = Words()
    adam = torch.optim.AdamW(net.parameters())
    hidden = (torch.zeros(1, 20, 8), torch.zeros(1, 20, 8))
    while True:
        words = torch.randint(50, (35, 20))
        guesses, hidden = net(words, tuple(state.detach() for state in hidden))
        nn.functional.cross_entropy(guesses.view(-1, 50), words.view(-1)).backward()
        adam.step()
        adam.zero_grad()
"""

KEYWORDS = """\
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.out = nn.Embedding(50, 8), nn.Linear(8, 50)
        def forward(self, batch, labels=None):
            guesses = self.out(self.embedding(batch["input_ids"]) * batch["attention_mask"][..., None])
            return nn.functional.cross_entropy(guesses.view(-1, 50), labels.view(-1))

    net = Masked()
    adam = torch.optim.AdamW(net.parameters())
    while True:
        words = torch.randint(50, (4, 16))
        net(batch={"input_ids": words, "attention_mask": torch.ones(4, 16)}, labels=words).backward()
        adam.step()
        adam.zero_grad()
"""

LIST_OF_IMAGES = """\
    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Conv2d(3, 2, 3)
        def forward(self, images, boxes):
            return sum(self.layer(image).mean() for image in images)

    net = Detector()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        images = [torch.rand(3, 8 + k, 9) for k in range(6)]
        net(images, [{"box": torch.rand(k + 1, 4)} for k in range(6)]).backward()
        sgd.step()
        sgd.zero_grad()
"""

PACKED = """\
    net = nn.LSTM(3, 4)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        sequences = nn.utils.rnn.pack_sequence([torch.rand(k, 3) for k in (9, 7, 4, 2, 1)])
        net(sequences)[0].data.mean().backward()
        sgd.step()
        sgd.zero_grad()
"""

PACKED_GRAPH = """\
    class Graphs(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 1)
        def forward(self, nodes, edges, graph_of_node):
            return self.layer(nodes).mean()

    net = Graphs()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        net(torch.rand(37, 5), torch.zeros(2, 61).long(), torch.zeros(37).long()).backward()
        sgd.step()
        sgd.zero_grad()
"""


@pytest.mark.parametrize(
    ("program", "batch", "samples"),
    [
        (SEQUENCE_FIRST, 20, 20),
        (SEQUENCE_FIRST, 35 * 20, 700),
        (KEYWORDS, 4, 4),
        (LIST_OF_IMAGES, 6, 6),
        (PACKED, 5, 5),
        (PACKED_GRAPH, 8, None),
    ],
    ids=["sequence first", "counted in tokens", "keywords", "list of images", "packed sequence", "packed graphs"],
)
def test_samples_are_read_in_every_usual_layout_and_not_guessed_in_others(
    rig: Rig, tmp_path: Path, program: str, batch: int, samples: int | None
) -> None:
    record = run(tmp_path, program, batch=batch)

    assert record.reported.samples_per_step == samples
    assert "batch-samples" not in codes(record)


def test_inputs_none_of_whose_sizes_is_the_batch_are_a_doubt_that_shows_them(rig: Rig, tmp_path: Path) -> None:
    program = """\
    net = nn.Linear(4, 3)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        net(torch.randn(8, 4)).mean().backward()
        sgd.step()
        sgd.zero_grad()
    """
    record = run(tmp_path, program, batch=32)
    (doubt,) = [doubt for doubt in record.doubts if doubt.code == "batch-samples"]

    assert record.reported.samples_per_step is None
    assert "8 × 4" in doubt.message
    assert "32" in doubt.message


def test_smaller_last_batch_of_an_epoch_is_counted(rig: Rig, tmp_path: Path) -> None:
    program = """\
    net = nn.Linear(4, 3)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        for size in (8, 8, 2):
            net(torch.randn(size, 4)).mean().backward()
            sgd.step()
            sgd.zero_grad()
    """
    record = run(tmp_path, program, batch=8)
    (doubt,) = [doubt for doubt in record.doubts if doubt.code == "batch-samples"]

    assert record.reported.samples_per_step == 6
    assert "6 samples per step" in doubt.message


@pytest.mark.parametrize("backend", ["none", "gloo"])
def test_workers_that_do_not_exchange_are_a_doubt_beside_the_row(rig: Rig, tmp_path: Path, backend: str) -> None:
    program = f"""\
    if {backend!r} == "gloo":  # connected, and the model is not wrapped
        torch.distributed.init_process_group("gloo")
    net = nn.Linear(4, 3)
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        net(torch.randn(8, 4)).mean().backward()
        sgd.step()
        sgd.zero_grad()
    """
    record = run(tmp_path, program, batch=8, workers=2)
    (row,) = compare([record]).rows

    assert {rank.reported.exchange for rank in record.ranks} == {backend}
    assert "no-exchange" in {warning.code for warning in row.warnings}
    assert row.efficiency is None


def test_buckets_of_ddp_and_gradients_of_a_bare_group_reach_the_model(rig: Rig, tmp_path: Path) -> None:
    program = """\
    import sys
    torch.distributed.init_process_group("gloo")
    net = nn.Sequential(nn.Linear(4, 300), nn.Linear(300, 1000))
    if "ddp" in sys.argv:
        net = torch.compile(nn.parallel.DistributedDataParallel(net), backend="eager")
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    while True:
        net(torch.randn(8, 4)).mean().backward()
        if "ddp" not in sys.argv:
            for p in net.parameters():
                torch.distributed.all_reduce(p.grad)
        sgd.step()
        sgd.zero_grad()
    """
    gradients = 4.0 * (4 * 300 + 300 + 300 * 1000 + 1000)
    bare = run(tmp_path, program, batch=8, workers=2)
    wrapped = run(tmp_path, program, batch=8, workers=2, arguments="ddp")

    assert "no-exchange" not in codes(bare) | codes(wrapped)
    assert messages_of(bare)[0] == (gradients,)
    assert (wrapped.reported.wrapped, wrapped.reported.compiled) == ("DistributedDataParallel", True)
    assert len(messages_of(wrapped)[0]) == 2
    assert sum(messages_of(wrapped)[0]) == gradients
