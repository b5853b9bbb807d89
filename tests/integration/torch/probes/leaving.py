"""A group of one rank is left: is it still there, so that no destructor waits for its thread with Python's lock held?"""

import json
import sys
import weakref

import torch
import torch.distributed as dist

from paceline_worker.frameworks.torch import group as torch_group

store = dist.FileStore(sys.argv[1], 1)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
group = weakref.ref(dist.group.WORLD)
torch_group.leave()
del model
print(json.dumps({"there": group() is not None, "left": not dist.is_initialized()}))
