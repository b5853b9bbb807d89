"""One rank: train under each of the job's variants of knobs in turn, in one group; keep weights and their digests."""

import json
import os
from pathlib import Path

import numpy as np

from paceline_worker import protocol
from paceline_worker.frameworks.jax import training as adapter
from paceline_worker.frameworks.jax.group import join
from paceline_worker.frameworks.jax.phases import PHASES, stepper
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
    step, carry = stepper(job, training.source, training.program, training.carry, steps)
    group.meet()
    steps.open()
    for at in range(job.steps):
        step(at)
    steps.drain()
    parameters = carry()["parameters"]
    digests[name] = [training.digest(parameters, device) for device in range(job.devices)]
    np.savez(Path(job.folder, f"{name}.{job.rank}.npz"), **dict(training.as_in_graph(parameters)))
group.leave()
Path(job.folder, f"digests.{job.rank}.json").write_text(json.dumps(digests), encoding="utf-8")
