"""Its place puts `tests/` on the path, so that tests of every stage share builders such as `records`."""
