"""What PyTorch's compiler takes. It works when the model is first called: in the first step, not ahead of it."""


class CompileTime(object):
    """Asks the compiler once the first step is over; later steps may compile again, and are not in it."""

    def __init__(self, job, steps):
        self._watched = bool(job.knobs.get("compile") or job.knobs.get("jit_compile")) and job.warmup_steps > 0
        self._open = steps.open
        self._blocks = 0
        self._seconds = None

    def begin_block(self):
        """In place of `steps.open`: the first step is a block of its own where there is a warm-up."""
        if self._watched and self._blocks == 1:
            self._seconds = spent()
        self._blocks += 1
        self._open()

    def facts(self):
        return {} if self._seconds is None else {"compile_in_first_step_s": self._seconds}


def spent():
    """Seconds that the compiler says it took up to now, or None where it does not say."""
    try:
        from torch._dynamo.utils import calculate_time_spent

        return calculate_time_spent().get("total_wall_time")
    except (ImportError, AttributeError):  # not a public interface
        return None
