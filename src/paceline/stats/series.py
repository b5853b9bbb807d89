"""The steps inside one run: how they spread and drift. Never an interval: steps are correlated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from paceline.stats.checked import checked

DRIFT_POINTS = 500
"""Theil-Sen looks at every pair of points; longer runs are first reduced to this many block medians."""


class Drift(NamedTuple):
    """How much a quantity moved from the first step of a run to the last."""

    relative_change: float
    """Change over the run as a share of the median; 0.03 means 3 % larger at the end."""
    p: float
    """P value of "no trend". Correlated steps make it too small, so judge it together with the size."""


def relative_spread(samples: Sequence[float]) -> float:
    """Coefficient of variation: standard deviation (divisor n - 1) over the mean, of positive values.

    Pearson, "Regression, heredity and panmixia", Phil. Trans. A 187, 1896. Assumes nothing, but one outlier
    can dominate it, as it should in a warning about noise.

    Raises:
        ValueError: Fewer than two samples, or a value that is not finite and positive.
    """
    values = checked(samples, positive=True, at_least=2)
    scaled = values / values.max()
    return float(scaled.std(ddof=1) / scaled.mean())


def drift(samples: Sequence[float]) -> Drift:
    """Relative change over one run by a slope that outliers cannot tilt, and the p value of "no trend".

    The median of all pairwise slopes (Sen, "Estimates of the regression coefficient based on Kendall's tau",
    JASA 63, 1968) over the length of the run, as a share of the median; p from Kendall's tau. Assumes evenly
    spaced steps. Runs longer than 500 steps are reduced to block medians first, which bounds the time taken
    and weakens the correlation that makes p too small.

    Raises:
        ValueError: Fewer than three samples, or a value that is not finite and positive.
    """
    values = checked(samples, positive=True, at_least=3)
    steps = np.arange(len(values), dtype=np.float64)
    if len(values) > DRIFT_POINTS:
        steps, values = (
            np.array([np.median(block) for block in np.array_split(each, DRIFT_POINTS)]) for each in (steps, values)
        )
    values = values / values.max()
    if values.min() == 1.0:
        return Drift(relative_change=0.0, p=1.0)
    from scipy import stats  # noqa: PLC0415  takes a second to import

    slope = float(stats.theilslopes(values, steps).slope)
    return Drift(
        relative_change=slope * (len(samples) - 1) / float(np.median(values)),
        p=float(stats.kendalltau(steps, values).pvalue),
    )
