"""What is trained on: where it comes from, its checksum, its licence. Today synthetic samples, made from a seed."""

from paceline.datasets.synthetic import SyntheticData, write_synthetic

__all__ = ["SyntheticData", "write_synthetic"]
