"""How one rank trains with Keras on JAX: one compiled step of Keras's stateless calls, alone or in `DataParallel`.

This is the loop of Keras's guide "Writing a custom training loop in JAX", with what a step changes donated. With peers
the step is a program of all of them over one long batch (`keras.distribution.DataParallel`): the compiler adds the
exchange, and anything that looks at a batch as a whole looks at all of it.
"""

import os

import jax
import jax.numpy as jnp
import keras
import numpy as np

from paceline_worker import clock, protocol
from paceline_worker.frameworks.differences import derive, rounds_of
from paceline_worker.frameworks.jax import group as jax_group
from paceline_worker.frameworks.jax import phases as jax_phases
from paceline_worker.frameworks.jax.input import open_source
from paceline_worker.frameworks.jax.programs import compiled
from paceline_worker.frameworks.jax.training import flops_of, kernels_of
from paceline_worker.frameworks.keras.model import Trained
from paceline_worker.loop import take_steps
from paceline_worker.phases import Steps


def train(job, events):
    """Set up, take all steps, say what was learnt."""
    # No clean-up on the way out of an error: the process leaves at once, and with it all that it started.
    group = jax_group.join(job)
    put = group.batch if job.world_size == 1 else spread_over_ranks(job)
    # One seed for all ranks: with peers the masks are drawn for the whole batch, and every rank has its part.
    trained = Trained(job, job.seed)
    source = open_source(job, trained.layout, put)
    programs = Programs(trained)
    carry = first_carry(trained)
    if job.evidence:
        group.meet()
        _, _, gradients = programs.gradients()(carry, *source(0))
        trained.show_gradients(events, [_local(gradient) for gradient in gradients])
    program, compiling = compiled(programs.step(), carry, *source(0))
    steps = Steps(jax_phases.PHASES)
    step, carried = jax_phases.stepper(job, source, program, carry, steps)
    # From here on the steps hold it: the first one takes its memory.
    del carry
    events.write(
        "ready",
        framework_version=keras.__version__,
        parameters=trained.parameters,
        setup_s=clock.wall() - clock.started,
        facts=facts(trained, program, compiling),
    )
    group.meet()
    take_steps(job, events, steps, step, group.synchronize)
    value = values_of(trained, carried())
    # Before further programs are compiled, which the run's own peak contains.
    learnt = {"weights_sha256": trained.digest(value), "peak_rss_steps_bytes": protocol.peak_rss_bytes()}
    events.write("facts", facts=learnt)
    if job.evidence:
        trained.show_end(events, value)
    elif job.knobs["derive_phases"]:
        derived = derive_phases(trained, programs, program, carried(), source(0), group)
        events.write("facts", facts={"phases_derived": derived})
    group.leave()


def spread_over_ranks(job):
    """Make Keras spread all that it makes from now on; returns a rank's own samples → its part of a global batch."""
    devices = keras.distribution.list_devices("cpu")
    mesh = keras.distribution.DeviceMesh((job.world_size,), ["batch"], devices)
    distribution = keras.distribution.DataParallel(device_mesh=mesh, auto_shard_dataset=False)
    keras.distribution.set_distribution(distribution)

    def put(arrays):
        (array,) = arrays
        sharding = distribution.get_data_layout(array.shape).backend_layout
        return jax.make_array_from_process_local_data(sharding, array)

    return put


class Programs(object):
    """Makes programs of (carry, inputs, targets); what is returned must be compiled."""

    def __init__(self, trained):
        self._model = trained.model
        self._objective = trained.objective
        self._optimizer = trained.optimizer
        self._decay = trained.decay

    def forward(self):
        """→ (loss, statistics)."""

        def program(carry, inputs, targets):
            return self._loss(carry["parameters"], carry["statistics"], inputs, targets)

        return jax.jit(program)

    def gradients(self):
        """→ (loss, statistics, gradients)."""
        return jax.jit(self._backward)

    def step(self):
        """→ (carry, loss)."""

        def program(carry, inputs, targets):
            loss, statistics, gradients = self._backward(carry, inputs, targets)
            parameters = carry["parameters"]
            if self._decay:
                gradients = [gradient + self._decay * weight for gradient, weight in zip(gradients, parameters)]
            parameters, optimizer = self._optimizer.stateless_apply(carry["optimizer"], gradients, parameters)
            return {"parameters": parameters, "statistics": statistics, "optimizer": optimizer}, loss[None]

        return jax.jit(program, donate_argnums=0)

    def _loss(self, parameters, statistics, inputs, targets):
        logits, statistics = self._model.stateless_call(parameters, statistics, inputs, training=True)
        return self._objective(targets, logits), statistics

    def _backward(self, carry, inputs, targets):
        (loss, statistics), gradients = jax.value_and_grad(self._loss, has_aux=True)(
            carry["parameters"], carry["statistics"], inputs, targets
        )
        return loss, statistics, gradients


def first_carry(trained):
    """All that a step changes: weights, what else the model keeps (statistics, seeds), the optimizer's own."""
    model, optimizer = trained.model, trained.optimizer
    return {
        "parameters": [variable.value for variable in trained.variables],
        "statistics": [variable.value for variable in model.non_trainable_variables],
        "optimizer": [variable.value for variable in optimizer.variables],
    }


def values_of(trained, carry):
    """A function: variable of the model → its value in a carry."""
    held = dict(zip(map(id, trained.variables), carry["parameters"]))
    held.update(zip(map(id, trained.model.non_trainable_variables), carry["statistics"]))
    return lambda variable: _local(held[id(variable)])


def _local(array):
    return np.asarray(array.addressable_data(0))


def facts(trained, program, compiling):
    """What is in force."""
    job = trained.job
    wrapped = "none" if job.world_size == 1 else "keras.distribution.DataParallel"
    told = trained.facts(True, wrapped, kernels_of(program), "Keras's seed generator, one stream for the whole batch")
    told.update(
        threads=int(os.environ.get("NPROC") or len(os.sched_getaffinity(0))),
        backend_version="jax {}".format(jax.__version__),
        # The only phase that computes contains the wait for peers: a core that is idle then was not taken away.
        waits=job.world_size > 1,
        **({"loss_over": "global"} if job.world_size > 1 else {}),
        xla_flags=os.environ.get("XLA_FLAGS", ""),
        framework_flops=flops_of(program),
    )
    told.update(compiling)
    return told


def derive_phases(trained, programs, whole, carry, batch, group):
    """The fact `phases_derived`. Trains on with `carry`, which is of no use afterwards.

    With peers the parts before the exchange are programs of this rank's own part alone.
    """
    job = trained.job
    shared = job.world_size > 1
    own = (carry, *batch)
    if shared:
        own = jax.tree.map(lambda array: array.addressable_data(0), own)
        keras.distribution.set_distribution(None)
    made = [("forward", programs.forward()), ("backward", programs.gradients())]
    if shared:
        made.append(("update", programs.step()))
    spent, parts = 0.0, []
    for phase, program in made:
        # Copies for each: a step gives the memory of its carry away.
        copies = list(jax.tree.map(jnp.copy, own))
        ready, took = compiled(program, *copies)
        spent += took["compile_s"]
        parts.append((phase, jax_phases.runner(ready, copies)))
    parts.append(("communication" if shared else "update", jax_phases.runner(whole, [carry, *batch])))
    group.meet()
    return derive(parts, rounds_of(job.steps), group.synchronize, spent)
