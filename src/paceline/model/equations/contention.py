"""What several want at once: a link that jobs share, cores that workers outnumber. Closed forms. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def shared_link_step(compute_s: float, carry_s: float, *, jobs: int) -> float:
    """Seconds of a step of each of several equal jobs that began together and exchange over one link.

    A fair link gives each an equal share, so all carry for as long as they would one after the other.
    """
    return compute_s + jobs * carry_s


def crowded_step(step_s: float, demands_s: Sequence[float], *, cores: float) -> float:
    """Seconds of a step of workers that share cores: no shorter than all the CPU time they need together takes there.

    Args:
        step_s: of a worker that has its cores for itself.
        demands_s: CPU time of each worker's step.
    """
    return max(step_s, sum(demands_s) / cores)
