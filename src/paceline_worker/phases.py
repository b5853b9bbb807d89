"""The times of a block of steps, kept in memory as bare numbers until the block is over.

A step is cut by laps: lap k closes phase k, the last lap closes the step. Steps of a block are contiguous: a step
starts where the one before it ended, so batch / step time is the true throughput. One lap is one clock reading and
one list append, about 0.1 µs.
"""

from paceline_worker import clock


class Steps(object):
    """Laps, CPU times and losses of the steps of the block under way."""

    def __init__(self, phases):
        self.phases = tuple(phases)
        self._laps = []
        self._cpu = []
        self._starved = []
        self._losses = []
        self._origin = None
        self._origin_unix_s = None

    def open(self, at=None, cpu_at=None, starved_at=None):
        """Start a block: its first step begins now (or at times of the caller's own clocks)."""
        now = clock.wall() if at is None else at
        if self._origin is None:
            self._origin = now
            self._origin_unix_s = clock.unix()
        self._laps = [now]
        self._cpu = [clock.cpu() if cpu_at is None else cpu_at]
        self._starved = [clock.starved() if starved_at is None else starved_at]
        self._losses = []

    def lap(self):
        """Close the current phase now."""
        self._laps.append(clock.wall())

    def lap_at(self, at):
        """Close the current phase at a time taken earlier (in a hook, say), never before the previous lap."""
        self._laps.append(max(at, self._laps[-1]))

    def end(self, loss=None, cpu_at=None, starved_at=None):
        """The step is over (its last phase was closed by a lap); `loss` may be a lazy value with `float()`."""
        self._cpu.append(clock.cpu() if cpu_at is None else cpu_at)
        self._starved.append(clock.starved() if starved_at is None else starved_at)
        self._losses.append(loss)

    def drain(self):
        """The block as columns, one number a step, for an event line."""
        width = len(self.phases)
        laps, cpu = self._laps, self._cpu
        count = len(self._losses)
        if len(laps) != count * width + 1:
            raise AssertionError("{} laps for {} steps of {} phases".format(len(laps) - 1, count, width))
        starts = laps[0 : count * width : width]
        ends = laps[width::width]
        columns = {
            "start_s": [start - self._origin for start in starts],
            "wall_s": [end - start for start, end in zip(starts, ends)],
            "cpu_s": [after - before for before, after in zip(cpu, cpu[1:])],
            "starved_s": differences(self._starved),
            "phases": {},
            "origin_unix_s": self._origin_unix_s,
            "loss": [None if loss is None else float(loss) for loss in self._losses],
        }
        for index, phase in enumerate(self.phases):
            begins, closes = laps[index::width], laps[index + 1 :: width]
            columns["phases"][phase] = [close - begin for begin, close in zip(begins, closes)]
        return columns


def differences(readings):
    """From one reading of a clock to the next; of a clock that tells nothing, nothing."""
    return [None if after is None else after - before for before, after in zip(readings, readings[1:])]
