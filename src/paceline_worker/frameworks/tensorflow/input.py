"""What a TensorFlow rank reads: samples resident in memory, or a real pipeline of `tf.data`.

Both deal out the samples in the order of `paceline_worker.batches`.
"""

import numpy as np
import tensorflow as tf

from paceline_worker.batches import batch_indices, cycle_steps
from paceline_worker.frameworks.prepared import CROP_PADDING
from paceline_worker.frameworks.prepared import as_numbers as plain_numbers
from paceline_worker.frameworks.samples import Samples


class Resident(object):
    """All batches that the run sees, normalised once and handed to TensorFlow before the first step."""

    def __init__(self, job, put):
        """Args: put: one array for each worker of this process → what the step takes."""
        samples = Samples(job.input["index"])
        inputs = as_numbers(np.asarray(samples.inputs), samples)
        targets = np.asarray(samples.targets).astype(np.int32)
        self._batches = []
        cycle = cycle_steps(job.workers, job.batch, samples.count)
        for step in range(min(cycle, job.warmup_steps + job.steps)):
            places = [
                batch_indices(step, job.rank * job.devices + device, job.workers, job.batch, samples.count)
                for device in range(job.devices)
            ]
            self._batches.append((put([inputs[own] for own in places]), put([targets[own] for own in places])))

    def __call__(self, step):
        return self._batches[step % len(self._batches)]


class Pipeline(object):
    """`tf.data`: read, crop, flip, normalise, batch; with loaders in so many threads of its own and ahead of the step.

    The order is that of the samples, and one iterator lasts the whole run, so no step waits for an epoch to begin.
    """

    def __init__(self, job, put):
        """Args: as of `Resident`."""
        self._put = put
        self._iterators = [
            iter(dataset(job, job.rank * job.devices + device, Samples(job.input["index"])))
            for device in range(job.devices)
        ]
        self._first = [next(iterator) for iterator in self._iterators]

    def __call__(self, step):
        # The first one is asked for more than once: to trace the step, by the first step, and to derive phases.
        batches = self._first if step == 0 else [next(iterator) for iterator in self._iterators]
        inputs, targets = zip(*batches)
        return self._put(list(inputs)), self._put(list(targets))


def dataset(job, worker, samples):
    """The batches of one worker, without end."""
    loaders = job.input["loader_workers"]
    stored = tf.constant(np.asarray(samples.inputs))
    targets = tf.constant(np.asarray(samples.targets).astype(np.int32))
    image = samples.kind == "image"

    def places(step):
        # As `paceline_worker.batches.batch_indices`.
        first = (step * job.workers + worker) * job.batch
        return tf.data.Dataset.from_tensor_slices((first + tf.range(job.batch, dtype=tf.int64)) % samples.count)

    def ready(place):
        sample = stored[place]
        if image:
            sample = cropped_and_flipped(tf.transpose(sample, (1, 2, 0)))
        if samples.normalisation is not None:
            subtract, divide = (samples.normalisation[name] for name in ("subtract", "divide"))
            sample = (tf.cast(sample, tf.float32) - subtract) / divide
        return sample, targets[place]

    batches = tf.data.Dataset.counter().flat_map(places).map(ready, num_parallel_calls=loaders or None)
    batches = batches.batch(job.batch, drop_remainder=True)
    options = tf.data.Options()
    options.threading.private_threadpool_size = max(1, loaders)
    options.autotune.enabled = False
    return (batches.prefetch(loaders) if loaders else batches).with_options(options)


def cropped_and_flipped(image):
    """A window of the image's own size out of the image with zeros around it, mirrored every other time."""
    height, width, channels = image.shape
    padded = tf.image.resize_with_crop_or_pad(image, height + 2 * CROP_PADDING, width + 2 * CROP_PADDING)
    return tf.image.random_flip_left_right(tf.image.random_crop(padded, (height, width, channels)))


def open_source(job, put):
    """The source that the job asks for."""
    return {"resident": Resident, "pipeline": Pipeline}[job.input["kind"]](job, put)


def as_numbers(stored, samples):
    """As every framework makes them, images channels-last."""
    numbers = plain_numbers(stored, samples.normalisation)
    return numbers.transpose(0, 2, 3, 1) if samples.kind == "image" else numbers
