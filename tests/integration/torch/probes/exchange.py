"""One rank: train under each of the job's variants (knobs, strategy) in turn, in one process group; keep what it saw."""

import json
import os
from pathlib import Path

import numpy as np
import torch

from paceline_worker import protocol
from paceline_worker.frameworks.torch import group as torch_group
from paceline_worker.frameworks.torch.training import Training, weights_digest
from paceline_worker.phases import Steps

job = protocol.load_job(os.environ)
facts = {}
for number, (name, variant) in enumerate(job.data["variants"].items()):
    changes = dict(variant)
    job.strategy = changes.pop("strategy", job.data["framework"]["strategy"])
    job.knobs = dict(job.data["framework"]["knobs"], **changes)
    if number:
        # Both are once a process, and were done for the first variant.
        torch_group.join = lambda _job: None
        torch.set_num_interop_threads = lambda _threads: None
    training = Training(job)
    way = training.way
    steps = Steps(way.phases)
    step = way.stepper(training.source, steps)
    kept = {}

    def keep(what, pairs, kept=kept):
        kept.update({f"{what}/{tensor}": value.copy() for tensor, value in pairs})

    way.before_first_update(lambda keep=keep, way=way: keep("gradients", way.trainable(lambda p: p.grad)))
    steps.open()
    for at in range(job.steps):
        step(at)
    block = steps.drain()
    keep("weights", way.trainable())
    keep("statistics", way.statistics())
    facts[name] = {"weights_sha256": weights_digest(way), "loss": block["loss"], "parameters": way.parameters()}
    facts[name].update(training.facts())
    facts[name].update(way.late_facts())
    facts[name]["phases"] = {phase: sum(times) for phase, times in block["phases"].items()}
    facts[name]["wall_s"] = sum(block["wall_s"])
    np.savez(Path(job.folder, f"{name}.{job.rank}.npz"), **kept)
training.close()
Path(job.folder, f"facts.{job.rank}.json").write_text(json.dumps(facts), encoding="utf-8")
