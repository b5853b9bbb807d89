"""Build environments on a host that has only this source: `python -m paceline.environments NAME…`.

Hosts of a study need Python, pip and psutil for this; Paceline itself need not be installed there.
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
