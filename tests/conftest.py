"""Its place puts `tests/` on the path, so that tests of every stage share builders such as `records`."""

from hypothesis import settings

# Hypothesis gives an example 200 ms by default; on a busy machine an innocent one takes longer, and a test fails that
# was right. Nothing here may depend on how fast the machine is.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")
