"""The planning stage: trials with every value decided, the order of runs, skips with reasons, the estimate. Pure."""

from paceline.plan.expand import Catalog, expand
from paceline.plan.schedule import Plan, PlannedRun, Proposal, Skip, schedule
from paceline.plan.trial import Trial

__all__ = ["Catalog", "Plan", "PlannedRun", "Proposal", "Skip", "Trial", "expand", "schedule"]
