"""How many updates of others come between a worker's reading of the weights and its own gradient, without locks.

The servers count: one more key, to which every worker adds 1 with each step's gradients and reads back what it has
become. Servers apply their optimizer to any key, so it is the optimizer that knows which one is the counter.
"""

import mxnet as mx

COUNTER = 200000
"""The counter's key; the Trainer's keys are the places of its parameters."""


class CountingSGD(mx.optimizer.SGD):
    """MXNet's own, but for the one key. Sent to the servers, which import this module."""

    def create_state_multi_precision(self, index, weight):
        if index == COUNTER:
            return None
        return super(CountingSGD, self).create_state_multi_precision(index, weight)

    def update_multi_precision(self, index, weight, grad, state):
        # A server calls it with lists of one.
        if COUNTER in index:
            weight[0][:] += grad[0]
        else:
            super(CountingSGD, self).update_multi_precision(index, weight, grad, state)
