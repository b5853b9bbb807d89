"""The only stage that acts: starts processes on a site, supervises them, records what they did.

The stage can be called: `paceline.run(study)` is `paceline.api.run(study)`. The verb of the API and the name of the
stage are the same word, and importing a submodule binds it over any function of that name in the package.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from paceline.run.campaign import Budget, campaign
from paceline.run.equip import Equipment
from paceline.run.lock import machine_lock
from paceline.run.runner import Bench, clear_scratch, run_once

__all__ = ["Bench", "Budget", "Equipment", "campaign", "clear_scratch", "machine_lock", "run_once"]


class _Stage(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # By name and on use: the API joins all stages and lies right of this one.
        return import_module("paceline.api").run(*args, **kwargs)


sys.modules[__name__].__class__ = _Stage
