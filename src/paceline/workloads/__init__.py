"""Workloads: what is trained, as neutral layer graphs that every framework builds alike.

`MODELS` is the whole list. A new workload is one module with a function of keyword-only options that returns
a `Graph`, and one line here; no framework needs to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from paceline.errors import SpecError, did_you_mean
from paceline.workloads.graph import Graph
from paceline.workloads.options import checked_options

__all__ = ["MODELS", "Graph", "load_workload"]

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


def load_workload(name: str, options: Mapping[str, object] | None = None) -> Graph:
    """Build the graph of a known workload.

    Args:
        name: a key of `MODELS`.
        options: the workload's own, such as `{"num_classes": 100}`; JSON and TOML values only.

    Raises:
        SpecError: unknown workload or option (the hint lists the known), wrong type, impossible shapes.
    """
    if name not in MODELS:
        raise SpecError(f"unknown workload '{name}'", hint=did_you_mean(name, MODELS))
    module, _, function_name = MODELS[name].partition(":")
    function: Callable[..., Graph] = getattr(import_module(module), function_name)
    return function(**checked_options(function, options or {}, owner=f"workload '{name}'", word="option"))
