"""What the user asked: a study, read from TOML and checked key by key. Never touches the machine."""

from paceline.spec.catalog import SECTIONS, Key
from paceline.spec.load import load_study, read_study
from paceline.spec.study import Network, Repeats, Study

__all__ = ["SECTIONS", "Key", "Network", "Repeats", "Study", "load_study", "read_study"]
