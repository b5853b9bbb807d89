"""Readers and writers for other tools' formats: traces, network benchmarks and published tables."""
