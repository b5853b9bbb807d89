"""The machines of a run: the one that started it, and those that its ranks worked on, as far as known. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

UNKNOWN = "unknown"
"""Stands for a fact that nobody reported, so that it is not mistaken for an absent device or for zero."""
ON_THIS_MACHINE = frozenset({"local", "lab"})
"""The sites whose hosts are all on the machine that starts the run, so that its facts are theirs too."""


class _Identity(TypedDict):
    id: str
    """A hash that distinguishes machines."""


class MachineFacts(_Identity, total=False):
    """What is recorded about the machine that started a run, as it is stored.

    Only the id is always present: an imported profile has nothing else. A value is None if the system does not report
    it.
    """

    cpu_model: str
    cores: int | None
    """The physical cores."""
    threads: int | None
    """The hardware threads."""
    memory_bytes: int
    system: str
    kernel: str
    architecture: str
    virtual: bool
    """Whether it is a virtual machine."""
    accelerator: str
    """The names and number of its devices, "none" or "unknown"."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The machine behind one host of a run."""

    host: str
    """The name of the host, as in `Rank.host`."""
    cpu_model: str = UNKNOWN
    kernel: str = UNKNOWN
    accelerator: str = UNKNOWN
    """The names and number of its devices, "none" or "unknown"."""


def machines_of(
    hosts: Sequence[str], site: str, here: Mapping[str, object], reported: Sequence[Mapping[str, object]] = ()
) -> tuple[Machine, ...]:
    """Returns the machine behind every host, in the order of the hosts.

    Args:
        hosts: the names of the hosts.
        site: the site of the run.
        here: the facts of the machine that starts the run.
        reported: what hosts that are other machines report about themselves, each with its name as "host".
    """
    if site in ON_THIS_MACHINE:
        return tuple(_machine(host, here) for host in hosts)
    facts_of_host = {str(facts.get("host")): facts for facts in reported}
    return tuple(_machine(host, facts_of_host.get(host, {})) for host in hosts)


def _machine(host: str, facts: Mapping[str, object]) -> Machine:
    reported = {name: str(facts[name]) for name in ("cpu_model", "kernel", "accelerator") if facts.get(name)}
    return Machine(host=host, **reported)
