"""What a format with fewer bits than float32 does to the first gradient: the bound of strategies that compute in it.

The graph in float64, but every number that passes between layers is rounded to the format and back: inputs, weights,
what each layer gives, and what comes back through it. Sums within a layer stay exact, as hardware accumulates them in
float32. One such gradient is enough: it holds thousands of roundings, and its distance from the true one is their sum,
not the luck of one.
"""

import torch

FORMATS = {"bf16": torch.bfloat16}
"""The name that the host knows → the format."""


def rounded(net, kept):
    """The model, rounding whatever passes between its layers to a format. Its weights are rounded in place."""

    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(_context, x):
            return x.to(kept).to(x.dtype)

        @staticmethod
        def backward(_context, gradient):
            return gradient.to(kept).to(gradient.dtype)

    def round_input(_module, inputs):
        return tuple(Rounded.apply(x) if x.is_floating_point() else x for x in inputs)

    with torch.no_grad():
        for tensor in net.parameters():
            tensor.copy_(tensor.to(kept))
    for module in net.modules():
        if not list(module.children()):
            module.register_forward_hook(lambda _module, _inputs, output: Rounded.apply(output))
    net.register_forward_pre_hook(round_input)
    return net
