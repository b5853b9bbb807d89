"""Explains in words and with evidence why a step takes as long as it does. Pure: reads records, runs nothing."""
