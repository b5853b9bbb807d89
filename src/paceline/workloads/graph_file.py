"""A user's own model: a Python file whose function `graph` builds a layer graph from the same layer kinds as `MODELS`.

The file is executed in the host's interpreter. Every error in it is reported as an error of the study, with the file's
name and line. No framework imports the file: frameworks see only the graph.
"""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from paceline.errors import SpecError, documented
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import Graph
from paceline.workloads.options import checked_options

FUNCTION = "graph"
"""Name of the function that a file must have."""
EXAMPLE = documented("how-to/your-own-model")
INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of packages. They stay imported: many of them break when they are imported twice."""


def load_graph_file(path: Path, options: Mapping[str, object]) -> Graph:
    """Execute a file and call its `graph` with the options of the study.

    Raises:
        SpecError: no such file, an error in it (with its line), no such function or option, or no graph returned.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SpecError(f"{path}: no such file", hint="paths are relative to the study file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}", hint="check its path and permissions") from None
    with _as_module(path) as module, _told(path):
        exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102  the user's own file, on their wish
        function = _function(path, module)
        arguments = checked_options(function, options, owner=f"graph() of {path.name}", word="option")
        made = function(**arguments)
    if isinstance(made, GraphBuilder):
        raise SpecError(
            f"{path}: graph() returned the builder, not the graph",
            hint=f"end with: return net.build(Sgd(learning_rate=0.1))   {EXAMPLE}",
        )
    if not isinstance(made, Graph):
        raise SpecError(f"{path}: graph() returned {type(made).__name__}, not a graph", hint=EXAMPLE)
    return made


def _function(path: Path, module: ModuleType) -> Callable[..., object]:
    function = getattr(module, FUNCTION, None)
    if not inspect.isfunction(function):
        raise SpecError(
            f"{path}: has no function {FUNCTION}()",
            hint=f"write: def graph(*, hidden: int = 64) -> Graph: ...   {EXAMPLE}",
        )
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY or parameter.annotation is inspect.Parameter.empty:
            raise SpecError(
                f"{path}, line {function.__code__.co_firstlineno}: option '{name}' of graph() needs a type, after a *",
                hint=f"write: def graph(*, {name}: int = 64) -> Graph: ...   or float, bool, str, tuple[int, ...]",
            )
    return function


@contextmanager
def _as_module(path: Path) -> Iterator[ModuleType]:
    """A module of the file for as long as it is executed, with its folder on the path, as if it were started."""
    module = ModuleType(f"paceline_graph_of_{path.stem}")
    module.__file__ = str(path)
    folder = path.resolve().parent
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(folder))
    before = set(sys.modules)
    try:
        yield module
    finally:
        sys.path.remove(str(folder))
        del sys.modules[module.__name__]
        # Modules beside the file are removed again, because two studies may both have a blocks.py.
        for name in set(sys.modules) - before:
            if _is_own(getattr(sys.modules[name], "__file__", None) or "", folder):
                del sys.modules[name]


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Errors of the user's file as errors of the study: where it is in their file, and what to do."""
    try:
        yield
    except SyntaxError as error:
        where = f"{error.filename or path}, line {error.lineno}"
        raise SpecError(f"{where}: {type(error).__name__}: {error.msg}", hint="mend the file") from None
    except SpecError as error:
        if error.message.startswith(str(path)):
            raise
        raise SpecError(f"{_where(path, error)}: {error.message}", hint=error.hint or EXAMPLE) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a user's file does
        hint = f"try it: {Path(sys.executable).name} {path}   layer kinds: {documented('reference/graph')}"
        raise SpecError(f"{_where(path, error)}: {type(error).__name__}: {error}", hint=hint) from None


def _where(path: Path, error: BaseException) -> str:
    """The last line of the user's own files on the way to the error."""
    folder = path.resolve().parent
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if frame.filename == str(path) or _is_own(frame.filename, folder)]
    return f"{own_frames[-1].filename}, line {own_frames[-1].lineno}" if own_frames else str(path)


def _is_own(file: str, folder: Path) -> bool:
    """Whether a file belongs to the user's folder, and not to what is installed in an environment inside it."""
    place = Path(file)
    return place.is_relative_to(folder) and INSTALLED.isdisjoint(place.relative_to(folder).parts)
