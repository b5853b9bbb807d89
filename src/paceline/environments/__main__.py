"""Build environments where only this source is: `python -m paceline.environments NAME…`.

For hosts that a study reaches: they need Python, pip and psutil, and nothing else of ours.
"""

from __future__ import annotations

import sys

from paceline.environments import load_environment
from paceline.errors import PacelineError


def main(names: list[str]) -> None:
    for name in names:
        try:
            load_environment(name, "the command line").create(print)
        except PacelineError as error:
            sys.exit(f"{error.message}; {error.hint}" if error.hint else error.message)


if __name__ == "__main__":
    main(sys.argv[1:])
