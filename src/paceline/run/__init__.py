"""The only stage that acts: it starts processes on a site, supervises them, and makes records of what they did."""

from paceline.run.campaign import Budget, campaign
from paceline.run.equip import Equipment
from paceline.run.lock import machine_lock
from paceline.run.runner import Bench, clear_scratch, run_once

__all__ = ["Bench", "Budget", "Equipment", "campaign", "clear_scratch", "machine_lock", "run_once"]
