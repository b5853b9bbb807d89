"""The data that models are trained on. Today these are synthetic samples, made from a seed."""

from paceline.datasets.synthetic import SyntheticData, write_synthetic

__all__ = ["SyntheticData", "write_synthetic"]
