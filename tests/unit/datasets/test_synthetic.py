import hashlib
import json

import numpy as np
import pytest

from paceline.datasets.synthetic import write_synthetic
from paceline.errors import SpecError
from paceline.workloads import MODELS, load_workload
from paceline.workloads.graph import Input

IMAGE = Input(kind="image", shape=(3, 8, 8), classes=10)
VECTOR = Input(kind="vector", shape=(30,), classes=3)
TOPICS = Input(kind="tokens", shape=(16,), classes=4, vocabulary=40)
CHAINS = Input(kind="tokens", shape=(16,), classes=40, vocabulary=40, target="next-token")

# Of 20 samples with seed 0: the same on every machine and with every NumPy.
GOLDEN = {
    "image": "cda4b5ce28f71e2086c5bebac559201eb45165f070823dcf8528b3cd7beb9a2d",
    "vector": "862381a904c57054b332e5a43565aabc836b73e874a0cb7c831b17817460d1d9",
    "topics": "078d121f08a83bfb5b927d269168923f0ae66dd4195995432b965cfadd1e3f30",
    "chains": "868238af07e66b5efb47d8ea6a3dba03e60c663d8717fa8ae1b1a247a834d39c",
}


def read(data):
    samples = np.fromfile(data.path, dtype="<i4" if data.dtype == "int32" else "u1")
    labels = None if data.labels_path is None else np.fromfile(data.labels_path, dtype="<i4")
    return samples.reshape(data.samples, *data.shape), labels


@pytest.mark.parametrize("given, name", [(IMAGE, "image"), (VECTOR, "vector"), (TOPICS, "topics"), (CHAINS, "chains")])
def test_samples_are_golden(tmp_path, given, name):
    assert write_synthetic(given, 20, 0, tmp_path).sha256 == GOLDEN[name]


def test_images_are_bytes_with_a_label_each(tmp_path):
    data = write_synthetic(IMAGE, 500, 1, tmp_path)
    samples, labels = read(data)

    assert (data.dtype, data.shape, samples.shape) == ("uint8", (3, 8, 8), (500, 3, 8, 8))
    assert labels.shape == (500,)
    assert set(labels) == set(range(10))


def test_normalised_images_are_centred_and_of_unit_order(tmp_path):
    data = write_synthetic(IMAGE, 500, 1, tmp_path)
    how = json.loads(data.index_path.read_text())["normalisation"]

    values = (read(data)[0].astype(np.float64) - how["subtract"]) / how["divide"]

    assert how == {"subtract": 127.5, "divide": 64.0}
    assert abs(values.mean()) < 0.2
    assert 0.5 < values.std() < 1.5


@pytest.mark.parametrize("given", [IMAGE, VECTOR])
def test_the_class_can_be_read_off_the_samples(tmp_path, given):
    samples, labels = read(write_synthetic(given, 600, 1, tmp_path))
    samples = samples.reshape(len(samples), -1).astype(np.float64)
    means = np.stack([samples[:300][labels[:300] == label].mean(axis=0) for label in range(given.classes)])

    nearest = ((samples[300:, None] - means) ** 2).sum(axis=2).argmin(axis=1)

    assert (nearest == labels[300:]).mean() > 0.8


def test_topics_favour_their_part_of_the_vocabulary(tmp_path):
    samples, labels = read(write_synthetic(TOPICS, 400, 0, tmp_path))

    own = (samples // 10 == labels[:, None]).mean()

    assert own == pytest.approx(0.5 + 0.5 / 4, abs=0.03)
    assert samples.min() >= 0
    assert samples.max() < 40


def test_next_token_samples_hold_one_token_more_and_no_labels(tmp_path):
    data = write_synthetic(CHAINS, 400, 0, tmp_path)
    samples, labels = read(data)

    assert labels is None
    assert data.shape == (17,)
    assert json.loads(data.index_path.read_text())["labels"] is None
    assert ((samples[:, :-1] * 3 + 7) % 40 == samples[:, 1:]).mean() > 0.5
    assert (samples >= 0).all()
    assert (samples < 40).all()


def test_the_index_says_all_a_reader_needs(tmp_path):
    data = write_synthetic(IMAGE, 7, 5, tmp_path)
    index = json.loads(data.index_path.read_text())

    assert index == {
        "version": 1,
        "kind": "image",
        "shape": [3, 8, 8],
        "dtype": "uint8",
        "samples": 7,
        "classes": 10,
        "target": "label",
        "vocabulary": 0,
        "seed": 5,
        "normalisation": {"subtract": 127.5, "divide": 64.0},
        "data": data.path.name,
        "labels": data.labels_path.name,
        "sha256": hashlib.sha256(data.path.read_bytes()).hexdigest(),
        "labels_sha256": hashlib.sha256(data.labels_path.read_bytes()).hexdigest(),
    }


def test_the_same_request_is_reused_and_another_is_not(tmp_path):
    first = write_synthetic(IMAGE, 7, 0, tmp_path)
    inode = first.path.stat().st_ino

    assert write_synthetic(IMAGE, 7, 0, tmp_path) == first
    assert first.path.stat().st_ino == inode
    for other in (write_synthetic(IMAGE, 8, 0, tmp_path), write_synthetic(IMAGE, 7, 1, tmp_path)):
        assert other.path != first.path


def test_damaged_samples_are_written_again(tmp_path):
    first = write_synthetic(IMAGE, 7, 0, tmp_path)
    first.labels_path.write_bytes(b"")

    again = write_synthetic(IMAGE, 7, 0, tmp_path)

    assert again == first
    assert again.labels_path.stat().st_size == 28


def test_nothing_temporary_is_left_behind(tmp_path):
    data = write_synthetic(IMAGE, 7, 0, tmp_path)

    assert sorted(tmp_path.iterdir()) == sorted([data.path, data.labels_path, data.index_path])


def test_no_samples_are_refused(tmp_path):
    with pytest.raises(SpecError, match="at least one sample"):
        write_synthetic(IMAGE, 0, 0, tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_every_workload_has_samples(tmp_path, name):
    graph = load_workload(name)

    samples, _ = read(write_synthetic(graph.input, 2, 0, tmp_path))

    extra = 1 if graph.input.target == "next-token" else 0
    assert samples.shape == (2, graph.input.shape[0] + extra, *graph.input.shape[1:])
