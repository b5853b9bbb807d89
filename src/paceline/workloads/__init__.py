"""Workloads: what is trained, as neutral layer graphs that every framework builds alike.

`MODELS` lists every model that Paceline ships. A new one is a module with a function of keyword-only options that
returns a `Graph`, and one line here; frameworks need no change. A user's own model is a file of the same form,
beside the study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from paceline.errors import SpecError, did_you_mean
from paceline.workloads.collective import MODEL as COLLECTIVE
from paceline.workloads.collective import Collective, load_collective
from paceline.workloads.graph import Graph
from paceline.workloads.graph_file import load_graph_file
from paceline.workloads.options import checked_options
from paceline.workloads.program import (
    LAUNCHES,
    PLACEHOLDERS,
    PLAIN,
    TORCHRUN,
    Program,
    read_program,
    unknown_placeholders,
)
from paceline.workloads.workload import Workload, known_sizes

__all__ = [
    "COLLECTIVE",
    "LAUNCHES",
    "MODELS",
    "PLACEHOLDERS",
    "PLAIN",
    "TORCHRUN",
    "Collective",
    "Graph",
    "Program",
    "Workload",
    "graph_of",
    "known_sizes",
    "load_collective",
    "load_workload",
    "read_program",
    "unknown_placeholders",
]

MODELS: dict[str, str] = {
    "mlp": "paceline.workloads.mlp:mlp",
    "lenet5": "paceline.workloads.lenet5:lenet5",
    "alexnet": "paceline.workloads.alexnet:alexnet",
    "googlenet": "paceline.workloads.googlenet:googlenet",
    "vgg16": "paceline.workloads.vgg16:vgg16",
    "resnet20": "paceline.workloads.resnet_cifar:resnet20",
    "resnet32": "paceline.workloads.resnet_cifar:resnet32",
    "resnet44": "paceline.workloads.resnet_cifar:resnet44",
    "resnet56": "paceline.workloads.resnet_cifar:resnet56",
    "resnet110": "paceline.workloads.resnet_cifar:resnet110",
    "resnet50": "paceline.workloads.resnet_imagenet:resnet50",
    "lstm": "paceline.workloads.lstm:lstm",
    "transformer": "paceline.workloads.transformer:transformer",
    "gpt": "paceline.workloads.transformer:gpt",
}


def load_workload(name: str, options: Mapping[str, object] | None = None, folder: Path | None = None) -> Graph:
    """Build the graph of a known workload, or of a user's file.

    Args:
        name: a key of `MODELS`, or a file that ends in .py.
        options: the workload's own, such as `{"num_classes": 100}`; JSON and TOML values only.
        folder: where a file is looked for; by default here.

    Raises:
        SpecError: unknown workload or option (the hint lists the known), wrong type, impossible shapes.
    """
    if name.endswith(".py"):
        return load_graph_file((folder or Path()) / name, options or {})
    if name not in MODELS:
        raise SpecError(
            f"unknown workload '{name}'", hint=f"{did_you_mean(name, [*MODELS, COLLECTIVE])}, or a file: my_model.py"
        )
    module, _, function_name = MODELS[name].partition(":")
    function: Callable[..., Graph] = getattr(import_module(module), function_name)
    return function(**checked_options(function, options or {}, owner=f"workload '{name}'", word="option"))


@cache
def _graph(name: str, options: tuple[tuple[str, object], ...]) -> Graph:
    return load_workload(name, dict(options))


def graph_of(name: str, options: Mapping[str, object]) -> Graph:
    """The graph of a model in `MODELS`, built once per process."""
    try:
        return _graph(name, tuple(sorted(options.items())))
    except TypeError:  # an option that is a list cannot be a key
        return load_workload(name, dict(options))
