"""How one rank trains with parameter servers: read the weights, compute, update, and wait for nobody.

Between-graph replication: every worker has a session of its own on a graph whose variables are on the servers, and
names are what they share. `ParameterServerStrategy` of TensorFlow 2 will not do here: its one coordinator drives
workers that have no loop, and so no steps, of their own. Batch norms' statistics and the samples are each worker's own.
"""

import json
import os
import time

import numpy as np
import tensorflow as tf

from paceline_worker import clock
from paceline_worker.batches import first_sample
from paceline_worker.frameworks.samples import Samples
from paceline_worker.frameworks.tensorflow.builder import build_objective, build_update
from paceline_worker.frameworks.tensorflow.group import claim_own_port
from paceline_worker.frameworks.tensorflow.input import as_numbers
from paceline_worker.frameworks.tensorflow.profile import derived, phase_of
from paceline_worker.frameworks.tensorflow.programs import BACKWARD, EXCHANGE, FORWARD, UPDATE
from paceline_worker.graph.stored import load_tensors, named_tensors

POLL_S = 0.001


class Shared(object):
    """Variables on the servers: parameters, velocities, the number of updates, and who has arrived where."""

    def __init__(self, parameters, servers):
        self.fed = {}
        """Placeholder → array that the first worker starts a variable with."""
        places = _places(parameters, servers)
        self.parameters, self.velocities = {}, {}
        for name, array in parameters.items():
            with tf.device(places[name]):
                self.parameters[name] = self._variable(array, name)
                zeros = tf.zeros(array.shape)
                self.velocities[name] = tf.compat.v1.Variable(zeros, name=name + "/velocity", trainable=False)
        with tf.device("/job:ps/task:0"):
            self.updates = tf.compat.v1.Variable(np.int64(0), name="updates", trainable=False)
            self.arrived = tf.compat.v1.Variable(np.int64(0), name="arrived", trainable=False)

    @property
    def all(self):
        return [*self.parameters.values(), *self.velocities.values(), self.updates, self.arrived]

    def _variable(self, array, name):
        initial = tf.compat.v1.placeholder(tf.float32, array.shape)
        self.fed[initial] = array
        return tf.compat.v1.Variable(initial, name=name, use_resource=True)


class Worker(object):
    """One rank: its graph, its session, and the step. Raises OSError if its port is taken."""

    def __init__(self, job):
        self._job = job
        self._meetings = 0
        self.staleness = []
        """Updates of others between reading the weights and applying one's own gradient, step by step."""
        claim_own_port()
        cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
        own = "/job:worker/task:{}".format(job.rank)
        config = tf.compat.v1.ConfigProto(
            intra_op_parallelism_threads=job.threads,
            inter_op_parallelism_threads=job.knobs["interop_threads"],
            # No session waits for other workers, nor ends with them.
            device_filters=["/job:ps", own],
        )
        server = tf.distribute.Server(cluster, job_name="worker", task_index=job.rank, config=config)
        parameters, statistics = load_tensors(job.graph, job.weights)
        with tf.Graph().as_default() as graph:
            tf.random.set_seed(job.seed * job.world_size + job.rank)
            self._shared = Shared(parameters, len(cluster["ps"]))
            with tf.device(own):
                self._statistics = {
                    name: tf.compat.v1.Variable(array, name=name, trainable=False) for name, array in statistics.items()
                }
                self._first, self._fetched = self._build()
            with tf.device("/job:ps/task:0"):
                arrive = self._shared.arrived.assign_add(1).op
                arrived = self._shared.arrived.read_value()
            missing = tf.compat.v1.report_uninitialized_variables(self._shared.all)
        self._session = tf.compat.v1.Session(server.target, graph=graph, config=config)
        self._session.run([variable.initializer for variable in self._own], self._own_fed)
        if job.rank == 0:
            self._session.run([variable.initializer for variable in self._shared.all], self._shared.fed)
        while self._session.run(missing).size:
            time.sleep(POLL_S)
        self._arrive = self._session.make_callable(arrive)
        self._arrived = self._session.make_callable(arrived)
        self._step = self._session.make_callable(self._fetched, feed_list=[self._first])

    @property
    def num_parameters(self):
        return sum(variable.shape.num_elements() for variable in self._shared.parameters.values())

    def batch(self, step):
        """Where the batch of a step begins: the samples are in a variable of the worker's own."""
        job = self._job
        return first_sample(step, job.rank, job.workers, job.batch, self._samples)

    def step(self, first):
        """Take one step; its loss."""
        loss, before, after = self._step(first)
        self.staleness.append(int(after - before - 1))
        return loss

    def synchronize(self):
        """Return when all workers are here."""
        self._meetings += 1
        self._arrive()
        while self._arrived() < self._meetings * self._job.world_size:
            time.sleep(POLL_S)

    def derive_phases(self, rounds):
        """The fact `phases_derived`, from what the session itself says of each operator that ran here.

        Communication is all the rest: the way to the servers and back, and what they do, the update too.
        """
        options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
        operators, profiled, plain = [], [], []
        for number in range(rounds):
            first = self.batch(number)
            begun = clock.wall()
            self._step(first)
            plain.append(clock.wall() - begun)
            seen = tf.compat.v1.RunMetadata()
            begun = clock.wall()
            self._session.run(self._fetched, {self._first: first}, options=options, run_metadata=seen)
            profiled.append(clock.wall() - begun)
            operators += self._operators(seen.step_stats)
        return derived(operators, profiled, plain, ["forward", "backward"], "communication")

    def _operators(self, statistics):
        """(begin, end, phase) of those that ran on this worker, in seconds."""
        for device in statistics.dev_stats:
            if "/job:worker/" in device.device:
                for node in device.node_stats:
                    # "name = Kind(inputs)"
                    kind = node.timeline_label.partition(" = ")[2].partition("(")[0]
                    phase = phase_of("{}:{}".format(node.node_name, kind))
                    if phase is not None:
                        begin = node.all_start_micros * 1e-6
                        yield begin, begin + node.op_end_rel_micros * 1e-6, phase

    def weights(self):
        return self._named(self._shared.parameters)

    def statistics(self):
        return self._named(self._statistics)

    def _named(self, variables):
        return named_tensors(self._job.graph, self._session.run(variables))

    def _build(self):
        """(placeholder of the batch's first sample, what a step fetches: loss, updates before and after)."""
        job, shared = self._job, self._shared
        first, inputs, targets = self._batch()
        with tf.name_scope(EXCHANGE), tf.device("/job:ps/task:0"):
            before = shared.updates.read_value()
        with tf.name_scope(EXCHANGE), tf.control_dependencies([before]):
            tensors = {}
            for name, variable in shared.parameters.items():
                with tf.device(variable.device):
                    tensors[name] = variable.read_value()
        with tf.name_scope(FORWARD):
            objective = build_objective(job.graph, job.knobs["precision"], job.knobs["unroll"])
            loss, kept = objective(tensors, self._statistics, inputs, targets)
            done = [self._statistics[name].assign(value).op for name, value in kept.items()]
        with tf.name_scope(BACKWARD):
            gradients = [tf.convert_to_tensor(gradient) for gradient in tf.gradients(loss, list(tensors.values()))]
        update = build_update(job.graph)
        with tf.name_scope(UPDATE):
            for name, gradient in zip(tensors, gradients):
                variable = shared.parameters[name]
                with tf.device(variable.device):
                    done.append(update(variable, shared.velocities[name], gradient))
            with tf.control_dependencies(done), tf.device("/job:ps/task:0"):
                after = shared.updates.assign_add(1).read_value()
        return first, [loss, before, after]

    def _batch(self):
        job = self._job
        samples = Samples(job.input["index"])
        self._samples = samples.count
        # A batch that wraps at the end of the file must be contiguous too: the first samples once more at the end.
        places = np.arange(samples.count + job.batch - 1) % samples.count
        first = tf.compat.v1.placeholder(tf.int32, [])
        self._own_fed, data, batches = {}, [], []
        targets = np.asarray(samples.targets).astype(np.int32)
        for stored in (as_numbers(np.asarray(samples.inputs), samples), targets):
            array = np.ascontiguousarray(stored[places])
            initial = tf.compat.v1.placeholder(array.dtype, array.shape)
            self._own_fed[initial] = array
            data.append(tf.compat.v1.Variable(initial, trainable=False))
            begin = tf.stack([first] + [0] * (array.ndim - 1))
            batches.append(tf.slice(data[-1], begin, [job.batch, *array.shape[1:]]))
        self._own = data + list(self._statistics.values())
        return (first, *batches)


def _places(parameters, servers):
    """Name → device: the largest first, each to the server that has least."""
    held, places = [0] * servers, {}
    for name in sorted(parameters, key=lambda one: -parameters[one].nbytes):
        task = held.index(min(held))
        held[task] += parameters[name].nbytes
        places[name] = "/job:ps/task:{}".format(task)
    return places
