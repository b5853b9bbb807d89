"""One rank: train under each of the job's variants of knobs in turn, in one process group; keep weights, facts."""

import json
import os
from pathlib import Path

import numpy as np
import torch

from paceline_worker import protocol
from paceline_worker.builders.torch import named_tensors
from paceline_worker.frameworks import torch_group
from paceline_worker.frameworks.torch import Training, weights_digest
from paceline_worker.frameworks.torch_phases import PHASES
from paceline_worker.phases import Steps

job = protocol.load_job(os.environ)
variants = job.data["variants"]
facts = {}
for number, (name, knobs) in enumerate(variants.items()):
    job.knobs = dict(job.data["framework"]["knobs"], **knobs)
    if number:
        # Both are once a process, and were done for the first variant.
        torch_group.join = lambda _job: None
        torch.set_num_interop_threads = lambda _threads: None
    training = Training(job)
    steps = Steps(PHASES)
    step = training.stepper(steps)
    for at in range(job.steps):
        steps.open()
        step(at)
        steps.drain()
    facts[name] = {"weights_sha256": weights_digest(training.net, job.graph)}
    if training.wrapped is not None:
        facts[name].update(torch_group.exchange_facts(training.wrapped))
    tensors = {tensor: value.detach().numpy() for tensor, value in named_tensors(training.net, job.graph)}
    np.savez(Path(job.folder, f"{name}.{job.rank}.npz"), **tensors)
training.close()
Path(job.folder, f"facts.{job.rank}.json").write_text(json.dumps(facts), encoding="utf-8")
