"""One training step of PyTorch cut into its phases, and the times of single layers.

    data           the batch is at hand: taken from memory, or waited for from the pipeline
    forward        model and loss
    backward       until this rank's last gradient is ready; all-reduces of earlier buckets run beside it
    communication  exposed communication: from there until `backward()` returns, with every gradient averaged. Contains
                   waiting for slower ranks. At world size 1 the microseconds in which autograd comes to its end
    update         optimizer step, and `zero_grad(set_to_none=True)` right after it, where it frees memory soonest

On CUDA every lap waits for the device, which costs some overlap of launching and computing; untested.
"""

import torch

from paceline_worker import clock

PHASES = ("data", "forward", "backward", "communication", "update")
WITHOUT_COMMUNICATION = ("data", "forward", "backward", "update")
"""Where ranks exchange in the middle of forward and backward passes, and no timer stands between."""


class LastGradient(object):
    """Stamps the moment when the last local gradient of a backward pass is ready.

    All parameters are watched in the first pass, and from then on only the one that came last: autograd's order is
    the same in every step. PyTorch calls these hooks before DDP hears of the gradient.
    """

    def __init__(self, named_parameters, stamp):
        self.at = None
        self.name = None
        """Which parameter it was."""
        self._stamp = stamp
        self._parameters = {name: p for name, p in named_parameters if p.requires_grad}
        self._hooks = [p.register_post_accumulate_grad_hook(self._learner(n)) for n, p in self._parameters.items()]

    @property
    def learning(self):
        return len(self._hooks) != 1

    def settle(self):
        """The first pass is over: watch only the parameter that came last."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = [self._parameters[self.name].register_post_accumulate_grad_hook(self._note)]

    def _learner(self, name):
        def note(_parameter):
            self.name = name
            self.at = self._stamp()

        return note

    def _note(self, _parameter):
        self.at = self._stamp()


def cpu_step(batch, forward, optimizer, steps, gradients, layers=None):
    """A function that takes step `number` and laps its phases.

    Args:
        batch: number of the step → (inputs, targets).
        forward: (inputs, targets) → loss.
        steps: a Steps of PHASES, or WITHOUT_COMMUNICATION.
        gradients: a LastGradient that stamps with the clock; None without communication.
        layers: a LayerTimes, or None.
    """
    lap, lap_at, end = steps.lap, steps.lap_at, steps.end

    def step(number):
        inputs, targets = batch(number)
        lap()
        loss = forward(inputs, targets)
        if layers is not None:
            layers.begin_backward()
        lap()
        loss.backward()
        if gradients is not None:
            lap_at(gradients.at)
        lap()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        lap()
        # Lazy: read when the block is written.
        end(loss.detach())
        if layers is not None:
            layers.end_step()
        if gradients is not None and gradients.learning:
            gradients.settle()

    return step


def accumulating_step(batch, forward, optimizer, steps, gradients, count, holding):
    """As `cpu_step`, in `count` micro-batches of which the gradients add up to the mean over the batch.

    Forward and backward passes take turns: each phase is the sum of its parts. `holding` is entered around each
    micro-batch, and told whether it is the last.
    """
    wall = clock.wall

    def step(number):
        inputs, targets = batch(number)
        steps.lap()
        begun = now = wall()
        forward_s = 0.0
        total = 0.0
        for place, (some, theirs) in enumerate(zip(inputs.chunk(count), targets.chunk(count))):
            with holding(place == count - 1):
                loss = forward(some, theirs) / count
                done = wall()
                forward_s += done - now
                loss.backward()
                now = wall()
            total = total + loss.detach()
        steps.lap_at(begun + forward_s)
        if gradients is not None:
            # The last micro-batch ends with the exchange, and so does the last phase of the two.
            steps.lap_at(gradients.at)
        steps.lap()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        steps.lap()
        steps.end(total)
        if gradients is not None and gradients.learning:
            gradients.settle()

    return step


def cuda_step(batch, forward, optimizer, steps, gradients, _layers=None):
    """As `cpu_step`; laps wait for the device, and `gradients` stamps by recording and returning a CUDA event."""

    def lap():
        torch.cuda.synchronize()
        steps.lap()

    def step(number):
        inputs, targets = batch(number)
        lap()
        loss = forward(inputs, targets)
        lap()
        loss.backward()
        averaged = torch.cuda.Event(enable_timing=True)
        averaged.record()
        averaged.synchronize()
        if gradients is not None:
            steps.lap_at(clock.wall() - gradients.at.elapsed_time(averaged) * 1e-3)
        steps.lap()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        lap()
        steps.end(loss.detach())
        if gradients is not None and gradients.learning:
            gradients.settle()

    return step


def cuda_stamp():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


class LayerTimes(object):
    """Forward time of every layer, and when its last gradient was ready after the start of the backward pass."""

    def __init__(self, layers):
        """Args: layers: layer name → module."""
        self._forward_s = {name: [] for name in layers}
        self._ready_s = {}
        self._ready_at = {}
        self._entered = None
        self._began = None
        for name, module in layers.items():
            module.register_forward_pre_hook(self._enter)
            module.register_forward_hook(self._leaver(self._forward_s[name]))
            for parameter in module.parameters():
                if parameter.requires_grad:
                    self._ready_s[name] = []
                    parameter.register_post_accumulate_grad_hook(self._watcher(name))

    def begin_backward(self):
        self._began = clock.wall()

    def end_step(self):
        for name, at in self._ready_at.items():
            self._ready_s[name].append(at - self._began)

    def columns(self, steps):
        """The last `steps` steps, as fields of a `layers` event."""
        return {
            "forward_s": {name: times[-steps:] for name, times in self._forward_s.items()},
            "gradient_ready_s": {name: times[-steps:] for name, times in self._ready_s.items()},
        }

    def _enter(self, _module, _inputs):
        self._entered = clock.wall()

    def _leaver(self, times):
        def leave(_module, _inputs, _output):
            times.append(clock.wall() - self._entered)

        return leave

    def _watcher(self, name):
        def ready(_parameter):
            self._ready_at[name] = clock.wall()

        return ready


def hook_cost_s(rounds=50, calls=100):
    """Seconds that the two forward hooks add to the call of a layer, on a layer that does nothing; best round."""
    plain, watched = torch.nn.Identity(), torch.nn.Identity()
    LayerTimes({"layer": watched})
    best = []
    for layer in (plain, watched):
        spent = []
        for _ in range(rounds):
            begun = clock.wall()
            for _ in range(calls):
                layer(None)
            spent.append(clock.wall() - begun)
        best.append(min(spent) / calls)
    return max(0.0, best[1] - best[0])
