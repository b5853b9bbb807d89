"""Layers of the neutral graph for which Gluon has no block of its own, made of MXNet's operators."""

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn


class Add(gluon.HybridBlock):
    def hybrid_forward(self, _ops, first, *others):
        for other in others:
            first = first + other
        return first


class Concat(gluon.HybridBlock):
    def hybrid_forward(self, ops, *branches):
        return ops.concat(*branches, dim=1)


class GlobalAvgPool(nn.GlobalAvgPool2D):
    def hybrid_forward(self, ops, x):
        return ops.flatten(super(GlobalAvgPool, self).hybrid_forward(ops, x))


class SubsamplePad(gluon.HybridBlock):
    """MXNet pads the last two axes only; channels become one of them by reshaping, which moves nothing."""

    def __init__(self, layer, **named):
        super(SubsamplePad, self).__init__(**named)
        a = layer["attributes"]
        self._step = (1, 1) + tuple(a["stride"])
        self._folded = (0, 1, layer["input_shapes"][0][0], -1)
        self._widths = (0, 0, 0, 0, a["pad_low"], a["pad_high"], 0, 0)
        self._shape = (0,) + tuple(layer["shape"])

    def hybrid_forward(self, ops, x):
        x = ops.slice(x, begin=(None,) * 4, end=(None,) * 4, step=self._step)
        x = ops.pad(ops.reshape(x, shape=self._folded), mode="constant", constant_value=0, pad_width=self._widths)
        return ops.reshape(x, shape=self._shape)


class PositionEmbedding(gluon.HybridBlock):
    def __init__(self, shape, **named):
        super(PositionEmbedding, self).__init__(**named)
        with self.name_scope():
            self.weight = self.params.get("weight", shape=tuple(shape))

    def hybrid_forward(self, ops, x, weight):
        return ops.broadcast_add(x, ops.expand_dims(weight, axis=0))


class Attention(gluon.HybridBlock):
    """Self-attention; the rows of qkv are q, k, v and within each head after head, as the graph stores them."""

    def __init__(self, steps, features, heads, causal, **named):
        super(Attention, self).__init__(**named)
        self._heads = heads
        self._scale = (features // heads) ** -0.5
        with self.name_scope():
            self.qkv = nn.Dense(3 * features, flatten=False, in_units=features)
            self.out = nn.Dense(features, flatten=False, in_units=features)
            if causal:
                later = np.triu(np.full((1, steps, steps), -np.inf, np.float32), 1)
                self.later = self.params.get_constant("later", mx.nd.array(later))

    def hybrid_forward(self, ops, x, later=None):
        # (batch, time, features) -> 3 x (batch * heads, time, features of a head)
        qkv = ops.reshape(self.qkv(x), shape=(0, 0, 3, self._heads, -1))
        qkv = ops.reshape(ops.transpose(qkv, axes=(2, 0, 3, 1, 4)), shape=(0, -3, 0, 0))
        q, k, v = ops.split(qkv, num_outputs=3, axis=0, squeeze_axis=True)
        scores = ops.batch_dot(q * self._scale, k, transpose_b=True)
        if later is not None:
            scores = ops.broadcast_add(scores, later)
        y = ops.batch_dot(ops.softmax(scores, axis=-1), v)
        y = ops.transpose(ops.reshape(y, shape=(-4, -1, self._heads, 0, 0)), axes=(0, 2, 1, 3))
        return self.out(ops.reshape(y, shape=(0, 0, -3)))


class LastStep(gluon.HybridBlock):
    def hybrid_forward(self, ops, x):
        return ops.reshape(ops.slice_axis(x, axis=1, begin=-1, end=None), shape=(0, -1))


class MeanOverTime(gluon.HybridBlock):
    def hybrid_forward(self, ops, x):
        return ops.mean(x, axis=1)
