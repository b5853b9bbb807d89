"""The study: what the user asks, read from TOML and checked key by key. This stage never touches the machine."""

from paceline.spec.catalog import SECTIONS, Key
from paceline.spec.load import load_study, parse_study, read_study
from paceline.spec.study import Network, Repeats, Study
from paceline.spec.study_file import study_text
from paceline.spec.trained import WorkloadOf, workloads_of

__all__ = [
    "SECTIONS",
    "Key",
    "Network",
    "Repeats",
    "Study",
    "WorkloadOf",
    "load_study",
    "parse_study",
    "read_study",
    "study_text",
    "workloads_of",
]
