"""Measurements that other tools wrote: traces, network tables and published tables, read and written."""
