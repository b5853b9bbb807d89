"""Draw the initial weights of a graph once, for every framework and every rank.

This module owns the file and its index; it must not know who reads it. `<graph>-<hash>-seed<n>.weights` is flat
little-endian float32, tensors one after the other without gaps; beside it the same name with `.json`:

    {"version": 1, "graph": "<hash>", "seed": 0, "sha256": "<of the whole file>", "bytes": 1078888,
     "tensors": [{"name": "layer.parameter", "shape": [16, 3, 3, 3], "offset_bytes": 0,
                  "trainable": true, "buffer": false}, ...]}

The same bytes on every machine and with every NumPy: only RandomState's frozen bit stream, integers, and the
correctly rounded +, *, / and sqrt of IEEE 754 are used. Hence no `standard_normal`: it calls the C library's
log, whose last bit differs between machines. Each tensor has its own stream, seeded by its name, so a layer
added or removed does not change the others.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from paceline.errors import SpecError
from paceline.workloads.atomic_file import atomic_file, read_json, write_json
from paceline.workloads.graph import Attribute, Graph, Parameter

VERSION = 1
ELEMENT_BYTES = 4
# Elements drawn at a time: VGG-16's first linear layer has 103 million, and float64 of it would be 0.8 GB.
CHUNK = 1 << 20

# A bell curve as the sum of four 16-bit integers: the sum has exactly this mean and variance, and ends at 3.46
# standard deviations, about where truncated normal initialisers end.
_TERMS = 4
_BELL_MEAN = _TERMS * (2**16 - 1) / 2
_BELL_STD = math.sqrt(_TERMS * (2**32 - 1) / 12)

Floats: TypeAlias = "npt.NDArray[np.float32]"


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightsFile:
    """The files of the initial weights."""

    path: Path
    """Flat little-endian float32."""
    index_path: Path
    """JSON: name, shape and offset of each tensor."""
    sha256: str
    """Checksum of the file at `path`."""


def write_initial_weights(graph: Graph, seed: int, folder: Path) -> WeightsFile:
    """Write weights and index into `folder`, unless they are already there, whole.

    Raises:
        SpecError: an unknown initialiser, or one without a number that it needs.
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{graph.name}-{graph.hash}-seed{seed}"
    path, index_path = folder / f"{stem}.weights", folder / f"{stem}.json"
    size = ELEMENT_BYTES * sum(tensor.size for _, tensor in graph.tensors())
    stored = read_json(index_path)
    if stored is not None and path.is_file() and path.stat().st_size == size:
        sha256 = stored.get("sha256")
        if isinstance(sha256, str) and stored == _index(graph, seed, size, sha256):
            return WeightsFile(path=path, index_path=index_path, sha256=sha256)
    with atomic_file(path) as file:
        for name, tensor in graph.tensors():
            for chunk in _draw(tensor, _stream(seed, name), f"tensor '{name}'"):
                file.write(chunk.astype("<f4", copy=False).tobytes())
    write_json(index_path, _index(graph, seed, size, file.sha256))
    return WeightsFile(path=path, index_path=index_path, sha256=file.sha256)


def _index(graph: Graph, seed: int, size: int, sha256: str) -> dict[str, object]:
    tensors: list[dict[str, object]] = []
    offset = 0
    for layer in graph.layers:
        for tensor in (*layer.parameters, *layer.buffers):
            tensors.append(
                {
                    "name": f"{layer.name}.{tensor.name}",
                    "shape": list(tensor.shape),
                    "offset_bytes": offset,
                    "trainable": tensor.trainable,
                    "buffer": tensor in layer.buffers,
                }
            )
            offset += ELEMENT_BYTES * tensor.size
    return {
        "version": VERSION,
        "graph": graph.hash,
        "seed": seed,
        "sha256": sha256,
        "bytes": size,
        "tensors": tensors,
    }


def _stream(seed: int, name: str) -> np.random.RandomState:
    digest = hashlib.sha256(f"{seed}|{name}".encode()).digest()
    return np.random.RandomState(np.frombuffer(digest, dtype="<u4").astype(np.uint32))


def _draw(tensor: Parameter, stream: np.random.RandomState, where: str) -> Iterator[Floats]:
    for start in range(0, tensor.size, CHUNK):
        yield _values(tensor, stream, min(CHUNK, tensor.size - start), where)


def _values(tensor: Parameter, stream: np.random.RandomState, count: int, where: str) -> Floats:
    init, kind = tensor.init, tensor.init["kind"]
    if kind == "zeros":
        return np.zeros(count, dtype=np.float32)
    if kind == "ones":
        return np.ones(count, dtype=np.float32)
    if kind == "normal":
        return _bell(stream, count, _number(init, "std", where))
    if kind == "he_normal":
        return _bell(stream, count, math.sqrt(2.0 / _number(init, "fan_in", where)))
    if kind == "uniform":
        return _uniform(stream, count, _number(init, "limit", where))
    if kind == "glorot_uniform":
        fans = _number(init, "fan_in", where) + _number(init, "fan_out", where)
        return _uniform(stream, count, math.sqrt(6.0 / fans))
    raise SpecError(
        f"{where}: unknown init '{kind}'",
        hint="known: zeros, ones, normal, he_normal, uniform, glorot_uniform",
    )


def _number(init: Mapping[str, Attribute], key: str, where: str) -> float:
    """A number of an initialiser, which may come from a user's graph file."""
    value = init.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SpecError(f"{where}: init '{init['kind']}' needs the number '{key}', not {value!r}")
    return value


def _bell(stream: np.random.RandomState, count: int, std: float) -> Floats:
    words = np.frombuffer(stream.bytes(2 * _TERMS * count), dtype="<u2").reshape(count, _TERMS)
    total = words.sum(axis=1, dtype=np.int32)
    values: Floats = ((total - _BELL_MEAN) * (std / _BELL_STD)).astype(np.float32)
    return values


def _uniform(stream: np.random.RandomState, count: int, limit: float) -> Floats:
    return ((2.0 * stream.random_sample(count) - 1.0) * limit).astype(np.float32)
