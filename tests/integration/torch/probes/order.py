"""Compare what the pipeline gives with what is resident, step by step; the job says how many loader workers."""

import json
import os
from pathlib import Path

import torch

from paceline_worker import protocol
from paceline_worker.frameworks.torch.input import Pipeline, Resident, own_batch

job = protocol.load_job(os.environ)
device = torch.device("cpu")
pipeline = Pipeline(job, own_batch(job), torch.channels_last, device)
resident = Resident(job, own_batch(job), torch.channels_last, device)
inputs_equal, targets_equal, dense, spread = [], [], True, 0.0
for step in range(job.steps):
    (some, some_targets), (other, other_targets) = pipeline(step), resident(step)
    inputs_equal.append(bool(torch.equal(some, other)))
    targets_equal.append(bool(torch.equal(some_targets, other_targets)))
    if some.dim() == 4:
        dense = dense and all(batch.is_contiguous(memory_format=torch.channels_last) for batch in (some, other))
    spread = max(spread, float((some - other).abs().max())) if some.is_floating_point() else 0.0
pipeline.close()
answer = {"inputs_equal": inputs_equal, "targets_equal": targets_equal, "channels_last": dense, "spread": spread}
Path(job.folder, "order.json").write_text(json.dumps(answer), encoding="utf-8")
