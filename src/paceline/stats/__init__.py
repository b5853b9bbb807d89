"""The statistics of run means: how sure is a number, and do two numbers differ.

One number per run. A run is a repeat in fresh processes, so its mean is an independent draw; the steps
inside a run are correlated, and pooling them makes intervals far too narrow (Kalibera & Jones, "Rigorous
benchmarking in reasonable time", ISMM 2013). Functions that take `run_means` or rounds expect that one
number; those that take `samples` describe the steps inside a single run and never yield an interval.

Times and throughputs are positive and vary by factors, so means, intervals and tests are made on logarithms:
a time and its reciprocal then tell the same story, and so do a/b and b/a (Fleming & Wallace, "How not to lie
with statistics", CACM 29(3), 1986).

Pure and deterministic: the bootstrap has a fixed seed. Knows nothing of trials, records or frameworks.
"""

from paceline.stats.differences import Spread, shared_spread
from paceline.stats.estimate import LEVEL
from paceline.stats.intervals import BOOTSTRAP_FROM, FEWEST_WITH_SPREAD
from paceline.stats.means import LEAST_RUNS, mean_interval, plain_interval, runs_needed
from paceline.stats.ratios import MARGIN, RatioTest, equivalent, ratio_interval
from paceline.stats.series import Drift, drift, relative_spread
from paceline.stats.verdict import ALPHA, Verdict, holm, verdict

__all__ = [
    "ALPHA",
    "BOOTSTRAP_FROM",
    "FEWEST_WITH_SPREAD",
    "LEAST_RUNS",
    "LEVEL",
    "MARGIN",
    "Drift",
    "RatioTest",
    "Spread",
    "Verdict",
    "drift",
    "equivalent",
    "holm",
    "mean_interval",
    "plain_interval",
    "ratio_interval",
    "relative_spread",
    "runs_needed",
    "shared_spread",
    "verdict",
]
