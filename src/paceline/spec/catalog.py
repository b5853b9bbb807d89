"""Every key that a study may have, with its type, default and meaning, in one table.

`load` checks studies against this table. docs/reference/study.md is generated from it, and a test compares the two.
Framework knobs and model options are not in it: frameworks and models define them, and `plan` checks them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from paceline.spec.networks import NETWORKS, read_network
from paceline.spec.study import Network, Repeats, StudyValue
from paceline.units import BYTES, BYTES_PER_SECOND, FRACTION, SECONDS, parse_quantity
from paceline.workloads import LAUNCHES, PLACEHOLDERS, TORCHRUN, unknown_placeholders


class _Default(Enum):
    REQUIRED = auto()


REQUIRED: Final = _Default.REQUIRED
"""Marks a key without a default."""
_FILLED_IN = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One key of a study."""

    parse: Callable[[object], StudyValue]
    """Reads one value; raises ValueError that says what is expected."""
    default: StudyValue | _Default
    """Used when the key is absent; REQUIRED if it must be there."""
    doc: str
    """One line for people."""
    axis: bool = True
    """Whether a list of values makes an axis."""


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} should be a text in quotes")
    return value


def _words(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} should be a text in quotes, as it would be typed")
    try:
        shlex.split(value)
    except ValueError as error:
        raise ValueError(f"{value!r} cannot be split into words: {error}") from None
    return value


def _arguments(value: object) -> str:
    text = _words(value)
    if unknown := unknown_placeholders(text):
        braced = f"{{{unknown[0]}}}"
        raise ValueError(f"nothing fills in {braced}; to hand it over as it is, double the braces: {{{braced}}}")
    return text


def _whole(minimum: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{value!r} should be a whole number")
        if value < minimum:
            raise ValueError(f"{value} should be at least {minimum}")
        return value

    return parse


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} should be true or false")
    return value


def _one_of(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} should be one of {', '.join(choices)}")
        return str(value)

    return parse


def _positive(units: dict[str, float]) -> Callable[[object], float]:
    def parse(value: object) -> float:
        quantity = parse_quantity(value, units)
        if quantity <= 0:
            raise ValueError(f"{value!r} should be above zero")
        return quantity

    return parse


def _not_negative(value: object) -> float:
    quantity = parse_quantity(value, SECONDS)
    if quantity < 0:
        raise ValueError(f"{value!r} should not be below zero")
    return quantity


def _network(value: object) -> Network:
    if isinstance(value, str):
        return read_network(value)
    if not isinstance(value, Mapping):
        raise ValueError(
            f"{value!r} should be a name, a bandwidth such as '150Mbit', "
            "or a table such as { bandwidth = '1Gbit', latency = '200us' }"
        )
    unknown = set(value) - {"bandwidth", "latency", "jitter"}
    if unknown:
        raise ValueError(f"unknown key {min(unknown)!r}; known: bandwidth, latency, jitter")
    bandwidth, latency, jitter = value.get("bandwidth"), value.get("latency"), value.get("jitter")
    network = Network(
        bandwidth_bytes_per_s=None if bandwidth is None else _positive(BYTES_PER_SECOND)(bandwidth),
        latency_s=None if latency is None else _not_negative(latency),
        jitter_s=None if jitter is None else _not_negative(jitter),
    )
    if (network.jitter_s or 0.0) > (network.latency_s or 0.0):
        raise ValueError(f"jitter {jitter!r} should not be above the latency that it varies")
    return network


def _repeats(value: object) -> Repeats:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return Repeats(minimum=value, maximum=value)
    if not isinstance(value, Mapping) or set(value) != {"min", "max", "until"}:
        raise ValueError(f"{value!r} does not fit")
    low, high, until = value["min"], value["max"], parse_quantity(value["until"], FRACTION)
    # A spread needs at least two runs.
    if not (isinstance(low, int) and isinstance(high, int) and 2 <= low <= high and until > 0):
        raise ValueError("needs 2 <= min <= max and until above 0")
    return Repeats(minimum=low, maximum=high, until=until)


SECTIONS: dict[str, dict[str, Key]] = {
    "study": {
        "name": Key(parse=_text, default=REQUIRED, axis=False, doc="Short name of the study."),
        "question": Key(parse=_text, default="", axis=False, doc="The question the study answers, in words."),
    },
    "workload": {
        "model": Key(
            parse=_text,
            default=None,
            doc="Model id, e.g. resnet20, or your Python file that builds a graph; options in [workload.MODEL].",
        ),
        "script": Key(
            parse=_text,
            default=None,
            doc="Instead of a model: your training program, a Python file beside the study.",
        ),
        "arguments": Key(
            parse=_arguments,
            default="",
            doc=f"The script's arguments, as one text; {_FILLED_IN} are filled in.",
        ),
        "files": Key(
            parse=_words,
            default="",
            axis=False,
            doc="Files that the script reads, besides the modules that it imports: names or patterns, as one text.",
        ),
        "launch": Key(
            parse=_one_of(*LAUNCHES),
            default=TORCHRUN,
            axis=False,
            doc="How the script is started: torchrun (with the variables of torchrun), or plain (one worker, without "
            "them).",
        ),
        "working_directory": Key(
            parse=_text,
            default=None,
            axis=False,
            doc="Current folder of the script, relative to the study; by default a fresh copy of the script's files.",
        ),
        "batch_per_worker": Key(parse=_whole(1), default=None, doc="Samples per worker and step: weak scaling."),
        "batch_global": Key(parse=_whole(1), default=None, doc="Samples per step over all workers: strong scaling."),
        "input": Key(
            parse=_one_of("resident", "pipeline"),
            default="resident",
            doc="Synthetic samples resident in memory, or a real input pipeline (read, crop, flip, normalise).",
        ),
        "loader_workers": Key(
            parse=_whole(0),
            default=0,
            doc="Loaders per worker that feed the pipeline, on its cores: processes (PyTorch, MXNet) or threads "
            "(TensorFlow, JAX); 0: the worker itself does.",
        ),
    },
    "framework": {
        "name": Key(
            parse=_text,
            default=REQUIRED,
            doc="Framework, e.g. torch; its knobs in [framework.NAME]. With [workload] script it may be left out.",
        ),
        "strategy": Key(
            parse=_text,
            default="data-parallel",
            doc="How workers share the work; data-parallel: each framework's own default for data parallelism.",
        ),
        "interpreter": Key(
            parse=_text,
            default=None,
            axis=False,
            doc="Use this Python, as it is, not the pinned environment; for several frameworks: in [framework.NAME].",
        ),
        "environment": Key(
            parse=_text,
            default=None,
            axis=False,
            doc="Use this pinned environment, not the framework's own; for several frameworks: in [framework.NAME].",
        ),
    },
    "cluster": {
        "site": Key(parse=_text, default="local", axis=False, doc="Where processes run; settings in [cluster.SITE]."),
        "hosts": Key(parse=_whole(1), default=1, doc="Number of hosts."),
        "workers_per_host": Key(parse=_whole(1), default=1, doc="Workers on each host."),
        "threads_per_worker": Key(parse=_whole(1), default=1, doc="Compute threads, and cores, of each worker."),
        "device": Key(parse=_one_of("cpu", "cuda"), default="cpu", doc="What the workers compute on."),
        "network": Key(
            parse=_network,
            default=None,
            doc="Links between hosts: a bandwidth such as '150Mbit', a table (bandwidth, one-way latency, jitter) or a "
            f"name: {', '.join(NETWORKS)}.",
        ),
        "oversubscribe": Key(
            parse=_flag, default=False, axis=False, doc="Allow more threads than cores (to study that case)."
        ),
    },
    "measure": {
        "warmup_steps": Key(parse=_whole(0), default=10, axis=False, doc="Steps before measuring, kept apart."),
        "steps": Key(parse=_whole(1), default=50, axis=False, doc="Measured steps per run."),
        "repeats": Key(
            parse=_repeats,
            default=Repeats(minimum=3, maximum=3),
            axis=False,
            doc="Runs per trial: repeats = 5, or repeats = { min = 3, max = 12, until = '2%' }.",
        ),
        "seed": Key(parse=_whole(0), default=0, doc="Seed of the initial weights and the data."),
        "layers": Key(
            parse=_flag,
            default=False,
            axis=False,
            doc="Record times of single layers; paceline export --format json --samples prints them.",
        ),
        "time_limit": Key(
            parse=_positive(SECONDS), default=900.0, axis=False, doc="A run is ended after this long, e.g. '10min'."
        ),
        "memory_limit": Key(
            parse=_positive(BYTES),
            default=None,
            axis=False,
            doc="A worker that uses more than this is ended; by default its share of 90 % of the free memory.",
        ),
    },
}
"""Section → key → what it is."""
