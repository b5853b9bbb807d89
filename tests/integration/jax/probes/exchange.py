"""One rank: train under each of the job's variants of knobs in turn, in one group; keep weights and their digests."""

import json
import os
from pathlib import Path

import numpy as np

from paceline_worker import protocol
from paceline_worker.builders.jax import named_tensors
from paceline_worker.frameworks import jax as adapter
from paceline_worker.frameworks.jax_group import join
from paceline_worker.frameworks.jax_phases import PHASES, stepper
from paceline_worker.phases import Steps

job = protocol.load_job(os.environ)
group = join(job)
# Once a process.
adapter.join = lambda _job: group
digests = {}
for name, knobs in job.data["variants"].items():
    job.knobs = dict(job.data["framework"]["knobs"], **knobs)
    group._flatten = job.knobs["flatten"]
    training = adapter.Training(job)
    steps = Steps(PHASES)
    step, carry = stepper(training.source, training.program, training.carry, steps)
    group.meet()
    steps.open()
    for at in range(job.steps):
        step(at)
    steps.drain()
    parameters = carry()["parameters"]
    digests[name] = adapter.weights_digest(parameters, job.graph, training.layout)
    local = {tensor: array.addressable_data(0) for tensor, array in parameters.items()}
    np.savez(Path(job.folder, f"{name}.{job.rank}.npz"), **dict(named_tensors(job.graph, local, training.layout)))
group.leave()
Path(job.folder, f"digests.{job.rank}.json").write_text(json.dumps(digests), encoding="utf-8")
