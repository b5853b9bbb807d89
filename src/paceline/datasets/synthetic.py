"""Make samples for any workload: right shape and type on disk, a weak signal, nothing to download, no licence.

This module owns the files and their index; it must not know a framework or a model beyond its `Input`. Images and
vectors are uint8, as CIFAR is stored, and the worker normalises them; tokens are little-endian int32. Labels are
little-endian int32, one per sample. With target `next-token` there are no labels: a sample holds T + 1 tokens, the
model reads the first T and predicts the last T. Samples follow each other without gaps; images are stored as channel,
row, column. The index:

    {"version": 1, "kind": "image", "shape": [3, 32, 32], "dtype": "uint8", "samples": 1024, "classes": 10,
     "target": "label", "vocabulary": 0, "seed": 0, "data": "<file>", "sha256": "...",
     "labels": "<file>" or null, "labels_sha256": "..." or null,
     "normalisation": {"subtract": 127.5, "divide": 64.0} or null}

`shape` is the shape of a stored sample, so (T + 1,) for next-token. A value x becomes (x - subtract) / divide. The
signal is strong enough for the loss to change within tens of steps, which the self-checks of a run look for; they do
not look for accuracy.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from paceline.errors import SpecError
from paceline.workloads.atomic_file import atomic_file, read_json, write_json
from paceline.workloads.graph import Input, Shape

VERSION = 1
SUBTRACT, DIVIDE = 127.5, 64.0  # about the mean and spread of photographs; those of these samples are 126.5 and 52
GRID = 4  # class patterns of images are GRID x GRID blocks: coarse enough for a convolution to detect
CHUNK = 1 << 12  # token sequences made at a time

Bytes: TypeAlias = "npt.NDArray[np.uint8]"
Ints: TypeAlias = "npt.NDArray[np.int32]"


@dataclass(frozen=True, kw_only=True, slots=True)
class SyntheticData:
    """The files of the samples."""

    path: Path
    """Samples, one after the other."""
    labels_path: Path | None
    """Labels, int32; None with target `next-token`."""
    index_path: Path
    """JSON that describes both."""
    sha256: str
    """Checksum of the file at `path`."""
    samples: int
    """Number of samples."""
    shape: Shape
    """Shape of one stored sample."""
    dtype: str
    """`uint8` or `int32`."""


def write_synthetic(given: Input, samples: int, seed: int, folder: Path) -> SyntheticData:
    """Write samples, labels and index into `folder`, unless the same request is already there, whole.

    Raises:
        SpecError: fewer than one sample.
        OSError: the folder cannot be written.
    """
    if samples < 1:
        raise SpecError(f"a dataset needs at least one sample, not {samples}")
    folder.mkdir(parents=True, exist_ok=True)
    request = _request(given, samples, seed)
    key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:12]
    stem = f"synthetic-{given.kind}-{samples}-{key}"
    path, index_path = folder / f"{stem}.data", folder / f"{stem}.json"
    labels_path = None if given.target == "next-token" else folder / f"{stem}.labels"
    index = request | {"data": path.name, "labels": labels_path.name if labels_path else None}

    def described(sha256: str) -> SyntheticData:
        return SyntheticData(
            path=path,
            labels_path=labels_path,
            index_path=index_path,
            sha256=sha256,
            samples=samples,
            shape=_stored_shape(given),
            dtype=_dtype(given),
        )

    stored = read_json(index_path) or {}
    sha256 = stored.get("sha256")
    sizes = {path: samples * math.prod(_stored_shape(given)) * np.dtype(_dtype(given)).itemsize}
    if labels_path is not None:
        sizes[labels_path] = 4 * samples
    if isinstance(sha256, str) and _is_whole(stored, index, sizes):
        return described(sha256)

    labels = _integers(_stream(seed, "labels"), samples, given.classes)
    with atomic_file(path) as file:
        make = _token_blocks if given.kind == "tokens" else _pixels
        for block in make(given, labels, seed):
            file.write(block.tobytes())
    index |= {"sha256": file.sha256, "labels_sha256": None}
    if labels_path is not None:
        with atomic_file(labels_path) as labels_file:
            labels_file.write(labels.astype("<i4").tobytes())
        index["labels_sha256"] = labels_file.sha256
    write_json(index_path, index)
    return described(file.sha256)


def _request(given: Input, samples: int, seed: int) -> dict[str, object]:
    return {
        "version": VERSION,
        "kind": given.kind,
        "shape": list(_stored_shape(given)),
        "dtype": _dtype(given),
        "samples": samples,
        "classes": given.classes,
        "target": given.target,
        "vocabulary": given.vocabulary,
        "seed": seed,
        "normalisation": None if given.kind == "tokens" else {"subtract": SUBTRACT, "divide": DIVIDE},
    }


def _stored_shape(given: Input) -> Shape:
    return (given.shape[0] + 1,) if given.target == "next-token" else given.shape


def _dtype(given: Input) -> str:
    return "int32" if given.kind == "tokens" else "uint8"


def _is_whole(stored: Mapping[str, object], index: Mapping[str, object], sizes: Mapping[Path, int]) -> bool:
    """Whether the stored index describes this request and its files have their full sizes."""
    files_fit = all(file.is_file() and file.stat().st_size == size for file, size in sizes.items())
    return files_fit and stored == {**stored, **index}


def _pixels(given: Input, labels: Ints, seed: int) -> Iterator[Bytes]:
    """Yield one sample at a time: half noise, half the pattern of its class."""
    noise = _stream(seed, "noise")
    size = math.prod(given.shape)
    cells: dict[int, bytes] = {}
    for label in map(int, labels):
        if label not in cells:  # seeding a stream costs more than a small image
            cells[label] = _stream(seed, f"class {label}").bytes(_num_cells(given))
        drawn = np.frombuffer(noise.bytes(size), dtype=np.uint8).reshape(given.shape)
        # At most 127 + 127: no overflow, no clipping.
        yield drawn // 2 + _pattern(given, cells[label]) // 2


def _num_cells(given: Input) -> int:
    return given.shape[0] * (1 if given.kind == "vector" else GRID * GRID)


def _pattern(given: Input, cells: bytes) -> Bytes:
    """A byte for each feature of a vector, or for each block of an image's channel."""
    values = np.frombuffer(cells, dtype=np.uint8)
    if given.kind == "vector":
        return values
    channels, height, width = given.shape
    rows, columns = np.arange(height) * GRID // height, np.arange(width) * GRID // width
    return values.reshape(channels, GRID, GRID)[:, rows[:, None], columns[None, :]]


def _token_blocks(given: Input, labels: Ints, seed: int) -> Iterator[Ints]:
    stream = _stream(seed, "tokens")
    for start in range(0, len(labels), CHUNK):
        block = labels[start : start + CHUNK]
        if given.target == "next-token":
            yield _chains(given, stream, len(block)).astype("<i4")
        else:
            yield _topics(given, stream, block).astype("<i4")


def _chains(given: Input, stream: np.random.RandomState, count: int) -> Ints:
    """Sequences of rare and frequent tokens, of which a random half are determined by the token before.

    A model learns the frequencies within tens of steps, and the thousand rules of succession only after many.
    """
    length, vocabulary = given.shape[0] + 1, given.vocabulary
    first = _integers(stream, count * length, vocabulary).astype(np.int64)
    second = _integers(stream, count * length, vocabulary)
    # The product of two uniform variables is distributed as words are: few are frequent, most are rare.
    tokens = (first * second // vocabulary).astype(np.int32).reshape(count, length)
    follows = _integers(stream, count * length, 2).reshape(count, length).astype(bool)
    for t in range(1, length):
        successor = (tokens[:, t - 1].astype(np.int64) * 3 + 7) % vocabulary
        tokens[:, t] = np.where(follows[:, t], successor, tokens[:, t])
    return tokens


def _topics(given: Input, stream: np.random.RandomState, labels: Ints) -> Ints:
    """Sequences of which a random half of the tokens come from the part of the vocabulary that belongs to the class."""
    count, vocabulary = len(labels) * given.shape[0], given.vocabulary
    size = max(1, vocabulary // given.classes)
    anything = _integers(stream, count, vocabulary).reshape(len(labels), -1)
    within = _integers(stream, count, size).reshape(len(labels), -1)
    topical = _integers(stream, count, 2).reshape(len(labels), -1).astype(bool)
    topic = (labels[:, None].astype(np.int64) * size + within) % vocabulary
    return np.where(topical, topic, anything).astype(np.int32)


def _integers(stream: np.random.RandomState, count: int, below: int) -> Ints:
    # From bytes, since RandomState.randint's stream depends on the platform's long. The bias of the remainder
    # is below / 2**32.
    return (np.frombuffer(stream.bytes(4 * count), dtype="<u4") % below).astype(np.int32)


def _stream(seed: int, purpose: str) -> np.random.RandomState:
    digest = hashlib.sha256(f"synthetic|{seed}|{purpose}".encode()).digest()
    return np.random.RandomState(np.frombuffer(digest, dtype="<u4").astype(np.uint32))
