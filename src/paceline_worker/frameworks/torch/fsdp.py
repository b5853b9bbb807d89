"""PyTorch ranks that each hold a share of every parameter: FSDP2 (`fully_shard`), block by block."""

import warnings

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from paceline_worker.frameworks.torch.alone import Alone
from paceline_worker.frameworks.torch.builder import module_name, sgd_rule
from paceline_worker.frameworks.torch.phases import WITHOUT_COMMUNICATION
from paceline_worker.graph.blocks import blocks

LEAST_PARAMETERS = 2**12
"""A norm or another small layer is gathered with the layer before it, not by itself."""


class Fsdp(Alone):
    """Parameters are gathered block by block when they are needed; gradients are averaged where they are kept."""

    wrapped = "FSDP2"
    phases = WITHOUT_COMMUNICATION
    begins_with_last_gradient = False
    communication_in = ("forward", "backward")
    communication_why = "blocks are gathered, and gradients reduced and scattered, beside computing"
    # FSDP2 takes row-major parameters only; images stay as they are, and convolutions follow the images.
    channels_last_filters = False

    def share(self):
        # Of logits that are a view, which nothing here writes over.
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
        mesh = init_device_mesh(self.device.type, (self.job.world_size,))
        reshard = self.job.knobs["reshard_after_forward"]
        units = blocks(self.job.graph, LEAST_PARAMETERS)
        self.unit_bytes = [sum(self.held_bytes(module_name(name)) for name in unit) for unit in units]
        for block in units[:-1]:
            # With the layers that have no parameters: a block ends when its last layer has run.
            layers = [module_name(name) for name in block if hasattr(self.net, module_name(name))]
            fully_shard([getattr(self.net, name) for name in layers], mesh=mesh, reshard_after_forward=reshard)
        # What is left, the last block, is the root's own: it is needed last and first again, and stays gathered.
        fully_shard(self.net, mesh=mesh)
        trainable = [p for p in self.net.parameters() if p.requires_grad]
        # There is no fused SGD for sharded tensors.
        self.optimizer = torch.optim.SGD(trainable, foreach=True, **sgd_rule(self.job.graph))

    def held_bytes(self, name):
        """Of a layer's parameters before they are dealt out."""
        layer = getattr(self.net, name, None)
        return 0 if layer is None else sum(p.numel() * p.element_size() for p in layer.parameters())

    def holding(self, last):
        self.net.set_requires_gradient_sync(last)
        return super().holding(last)

    def facts(self):
        held = sum(p.to_local().numel() for p in self.net.parameters())
        # In the order of the backward pass, in which gradients become ready.
        return {"shard_units": len(self.unit_bytes), "unit_bytes": self.unit_bytes[::-1], "parameters_held": held}
