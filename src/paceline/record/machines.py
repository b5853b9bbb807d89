"""The machines on which the ranks of a run worked, as far as they are known: not the one that commanded them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UNKNOWN = "unknown"
"""A word and not nothing: what nobody told is neither absent nor zero."""
ON_THIS_MACHINE = frozenset({"local", "lab"})
"""Sites whose hosts are all the machine that commands: what is known of it is known of them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """What one host of a run is."""

    host: str
    """Its name in the record: `Rank.host`."""
    cpu_model: str = UNKNOWN
    kernel: str = UNKNOWN
    accelerator: str = UNKNOWN
    """Names and number of its devices, "none", or "unknown"."""


def machines_of(
    hosts: Sequence[str], site: str, here: Mapping[str, Any], told: Sequence[Mapping[str, Any]] = ()
) -> tuple[Machine, ...]:
    """One for every host, in order.

    Args:
        hosts: their names.
        site: where the run was.
        here: facts of the machine that commands.
        told: what hosts that are other machines tell of themselves, each with its name as "host".
    """
    if site in ON_THIS_MACHINE:
        return tuple(_machine(host, here) for host in hosts)
    facts = {str(each.get("host")): each for each in told}
    return tuple(_machine(host, facts.get(host, {})) for host in hosts)


def _machine(host: str, facts: Mapping[str, Any]) -> Machine:
    known = {name: str(facts[name]) for name in ("cpu_model", "kernel", "accelerator") if facts.get(name)}
    return Machine(host=host, **known)
