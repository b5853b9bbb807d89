"""What PyTorch's own hooks tell of a program that knows nothing of us: its steps, phases, loss, sizes.

A step is one `step()` of the first optimizer that takes one. An interval gets the name of what ends it:

    data           until the model is called: the batch is waited for, gradients are not yet touched
    forward        until `backward()` is called, the loss included
    backward       until this rank's last gradient is ready
    communication  from there until `backward()` returns: DDP's exposed exchange
    update         `optimizer.step()`, what comes between it and `backward()` (clipping, unscaling), and `zero_grad()`

The model is the module that has parameters of an optimizer, by itself or through a wrapper (DDP, FSDP, compile), and
that the program itself calls. Modules without parameters (transforms, losses, metrics) are not watched: they belong to
whatever goes on. Calls of models that are not trained, such as a frozen teacher, count as forward.

With gradient accumulation a step has several rounds of the first four, added up. A call of the model without gradients
is an evaluation: from the step before it until the next call with gradients is in no step.
Hooks on every module are costly, so after the first step only modules that the program itself called keep theirs.
"""

import hashlib
import sys

import torch
import torch.distributed as dist
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from paceline_worker import clock
from paceline_worker.frameworks.torch import ddp_log
from paceline_worker.frameworks.torch import group as torch_group
from paceline_worker.frameworks.torch.phases import LastGradient
from paceline_worker.frameworks.torch.samples import SampleCounter

OTHER_EXCHANGES = ("horovod", "mpi4py", "byteps", "bagua")
"""Packages that exchange gradients by themselves, and of which PyTorch's process group knows nothing."""


class Watch(object):
    """What is known of the program's optimizers and models."""

    def __init__(self, job, recorder, take_steps):
        """Args: take_steps: cut the steps too; else the program marks them itself."""
        self.models = []
        """Modules with trained parameters that the program calls itself, in the order of their first calls."""
        self.optimizers = []
        self.hooks = None
        self._recorder = recorder
        self._operations = None
        """Exchanges between ranks before the first step."""
        self._notice_optimizers()
        if job.device == "cuda":
            recorder.wait_for_device = torch.cuda.synchronize
        if take_steps:
            self.hooks = StepHooks(self, recorder, SampleCounter(job.batch), stamp_gradients=job.device == "cpu")

    def parameters(self):
        """Trainable tensors of all optimizers, each once."""
        trainable = {}
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                trainable.update((id(p), p) for p in group["params"] if p.requires_grad)
        return list(trainable.values())

    def trains(self, module):
        """Whether an optimizer has any of its parameters, which may be those of a module inside it."""
        trained = {id(p) for p in self.parameters()}
        return any(id(p) in trained for p in module.parameters())

    def describe(self):
        """Fields of the `ready` event."""
        self._operations = _operations()
        trained = self.parameters()
        wrappers = [type(module).__name__ for module in self._unwrapped()]
        return {
            "framework_version": torch.__version__,
            "parameters": sum(p.numel() for p in trained) if trained else None,
            "facts": {
                "threads": torch.get_num_threads(),
                "interop_threads": torch.get_num_interop_threads(),
                "cpu_capability": torch.backends.cpu.get_cpu_capability(),
                "blas": "mkl" if torch.backends.mkl.is_available() else "other",
                "onednn": torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled,
                "gradient_bytes": sum(p.numel() * p.element_size() for p in trained) if trained else None,
                "precision": ", ".join(sorted({str(p.dtype).split(".")[-1] for p in trained})) or None,
                "compiled": "OptimizedModule" in wrappers,
                "wrapped": next((name for name in wrappers if "Parallel" in name), "none"),
                "exchange": _exchange(),
                "hooks": self.hooks is not None,
            },
        }

    def late_facts(self):
        """What is known only after the steps."""
        facts = {"optimizers": [type(optimizer).__name__ for optimizer in self.optimizers]}
        trained = self.parameters()
        if trained:
            digest = hashlib.sha256()
            for parameter in trained:
                # As bytes, since NumPy does not know every type that PyTorch has.
                digest.update(parameter.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
            facts["weights_sha256"] = digest.hexdigest()
        if self.hooks is not None:
            facts.update(self.hooks.facts())
        after = _operations()
        if after is not None and self._operations is not None:
            facts["exchanges_per_step"] = (after - self._operations) / float(max(1, self._recorder.taken))
        for module in self._unwrapped():
            if isinstance(module, torch.nn.parallel.DistributedDataParallel):
                facts.update(ddp_log.exchange_facts(module))
        return facts

    def _unwrapped(self):
        """The model as the program calls it, then what that wraps, and so on."""
        module, layers = (self.models[0] if self.models else None), []
        while isinstance(module, torch.nn.Module):
            layers.append(module)
            compiled = getattr(module, "_orig_mod", None)
            module = getattr(module, "module", None) if compiled is None else compiled
        return layers

    def leave(self):
        """Part when all ranks are here: a rank that leaves early would look like a broken connection."""
        if dist.is_available() and dist.is_initialized():
            torch_group.leave()

    def _notice_optimizers(self):
        make = torch.optim.Optimizer.__init__

        def noticed(optimizer, *args, **kwargs):
            make(optimizer, *args, **kwargs)
            _add(optimizer, self.optimizers)

        torch.optim.Optimizer.__init__ = noticed


class StepHooks(object):
    """Hooks on models, `backward()` and optimizers that tell a recorder where steps and phases are."""

    def __init__(self, watch, recorder, samples, stamp_gradients):
        if not hasattr(torch.Tensor, "register_post_accumulate_grad_hook"):
            raise RuntimeError(
                "PyTorch {} has not the hooks that tell steps apart (2.1 has): mark them instead "
                "(from paceline_worker import mark)".format(torch.__version__)
            )
        self._watch = watch
        self._recorder = recorder
        self._samples = samples
        self._stamp_gradients = stamp_gradients
        self._gradients = None
        self._depth = 0
        """Modules with parameters that are being called, one inside the other."""
        self._frozen = []
        """Models that the program calls and does not train."""
        self._in_frozen = False
        self._forward = False
        """Whether a forward pass is under way, which a backward pass will end."""
        self._backward = False
        self._stepping = None
        """The optimizer whose steps are the steps."""
        self._forwards = 0
        self._evaluations = 0
        self._everywhere = [
            register_module_forward_pre_hook(self._enter_any),
            register_module_forward_hook(self._leave_any),
        ]
        register_optimizer_step_pre_hook(self._before_update)
        register_optimizer_step_post_hook(self._after_update)
        self._wrap_backward()
        self._wrap_zero_grad()

    def facts(self):
        return {
            "last_gradient": None if self._gradients is None else self._gradients.name,
            "forwards_per_step": self._forwards / float(max(1, self._recorder.taken)),
            "evaluations": self._evaluations,
            "samples_from": "hooks",
            **self._samples.facts(),
        }

    def _enter_any(self, module, inputs):
        """Any module, in the first step: tell what it is by its parameters."""
        if _has_parameters(module):
            if self._depth or self._watch.trains(module):
                self._enter_model(module, inputs)
            else:
                self._enter_frozen(module)

    def _leave_any(self, module, inputs, output):
        if _has_parameters(module):
            self._leave(module, inputs, output)

    def _enter_model(self, module, inputs, named=None):
        if self._depth == 0 and not self._backward:
            self._called(module, inputs + tuple((named or {}).values()))
        self._depth += 1

    def _enter_frozen(self, module, _inputs=()):
        """The program calls a model that it does not train. That computes, and the wait for data goes on after it."""
        if self._depth == 0 and not self._backward:
            _add(module, self._frozen)
            if self._recorder.under_way and not self._forward:
                self._recorder.lap("data")
                self._in_frozen = True
        self._depth += 1

    def _leave(self, _module, _inputs, _output):
        self._depth = max(0, self._depth - 1)
        if self._in_frozen and self._depth == 0:
            self._in_frozen = False
            if self._recorder.under_way:
                self._recorder.lap("forward")

    def _called(self, module, inputs):
        """The program calls the model."""
        _add(module, self._watch.models)
        recorder = self._recorder
        if not torch.is_grad_enabled() and not self._forward:
            self._evaluations += recorder.under_way
            recorder.pause()
            return
        if recorder.under_way and not self._forward:
            recorder.lap("data")
        if not recorder.under_way:
            self._samples.clear()
        recorder.begin()
        if not self._forward:
            self._forward = True
            self._forwards += 1
            self._samples.forward(inputs)

    def _before_update(self, optimizer, _args, _kwargs):
        self._depth = 0
        self._in_frozen = False
        if self._stepping is None:
            self._stepping = optimizer
        if self._recorder.under_way:
            self._recorder.lap("update")

    def _after_update(self, optimizer, _args, _kwargs):
        recorder = self._recorder
        if not recorder.under_way:
            # Nothing that we know was called before: from here on this is where steps end.
            recorder.begin()
            return
        recorder.lap("update")
        if optimizer is self._stepping:
            self._settle()
            self._forward = False
            self._samples.end_step(recorder.measuring)
            recorder.end()

    def _settle(self):
        """The first step is over: from now on watch only what it turned out to consist of."""
        if not self._everywhere:
            return
        for hook in self._everywhere:
            hook.remove()
        self._everywhere = []
        # A wrapped model is often evaluated without its wrapper.
        inner = [getattr(model, "module", None) for model in self._watch.models]
        for model in self._watch.models + [module for module in inner if isinstance(module, torch.nn.Module)]:
            model.register_forward_pre_hook(self._enter_model, with_kwargs=True)
            model.register_forward_hook(self._leave)
        for model in self._frozen:
            # One that was called before there was an optimizer may be trained after all.
            if not self._watch.trains(model):
                model.register_forward_pre_hook(self._enter_frozen)
                model.register_forward_hook(self._leave)
        if self._gradients is not None and self._gradients.name is not None:
            self._gradients.settle()

    def _wrap_backward(self):
        run = torch.autograd.backward

        def backward(tensors, *args, **kwargs):
            recorder = self._recorder
            # Checkpointing runs one backward pass inside another.
            if self._backward or not recorder.under_way:
                run(tensors, *args, **kwargs)
                return
            if self._gradients is None and self._stamp_gradients:
                self._gradients = LastGradient(self._named_parameters(), clock.wall)
            recorder.lap("forward")
            began = clock.wall()
            self._backward = True
            try:
                run(tensors, *args, **kwargs)
            finally:
                self._backward = self._forward = False
            last = None if self._gradients is None else self._gradients.at
            if last is not None and last >= began:
                recorder.lap("backward", last)
                recorder.lap("communication")
            else:
                recorder.lap("backward")
            if isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
                recorder.loss(tensors)

        torch.autograd.backward = backward

    def _wrap_zero_grad(self):
        zero_grad = torch.optim.Optimizer.zero_grad

        def timed(optimizer, *args, **kwargs):
            recorder = self._recorder
            if not recorder.under_way:
                zero_grad(optimizer, *args, **kwargs)
                return
            recorder.lap("forward" if self._forward else "data")
            zero_grad(optimizer, *args, **kwargs)
            recorder.lap("update")

        torch.optim.Optimizer.zero_grad = timed

    def _named_parameters(self):
        names = {}
        for place, model in enumerate(self._watch.models):
            for name, p in model.named_parameters():
                names[id(p)] = name if place == 0 else "{}.{}".format(place, name)
        return [(names.get(id(p), "parameter{}".format(k)), p) for k, p in enumerate(self._watch.parameters())]


def _exchange():
    """Backend by which ranks exchange; "none" without peers; None where another package may do it."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return dist.get_backend()
    return None if any(name in sys.modules for name in OTHER_EXCHANGES) else "none"


def _operations():
    """Exchanges that this rank has taken part in so far, in all groups; None where PyTorch does not count them."""
    if not (dist.is_available() and dist.is_initialized()):
        return None
    try:
        groups = list(dist.distributed_c10d._world.pg_map)  # noqa: SLF001  there is no public door
        return sum(group._get_sequence_number_for_group() for group in groups)  # noqa: SLF001
    except (AttributeError, RuntimeError):  # not every backend counts, and a later PyTorch may take it away
        return None


def _add(thing, things):
    """Append it unless it is there; neither modules nor optimizers can be asked whether they are equal."""
    if not any(thing is other for other in things):
        things.append(thing)


def _has_parameters(module):
    return next(module.parameters(), None) is not None
