"""Samples made ready for training with NumPy: cropped, flipped and normalised, as an input pipeline does it.

For frameworks that leave this to NumPy. Knows no framework.
"""

import numpy as np

CROP_PADDING = 4
"""Zeros around an image before the random crop: He et al. 2016, section 4.2, as everyone trains CIFAR since."""


def prepared(samples, places, seed):
    """(inputs, targets) of the samples at these places, images as channels, height, width.

    Args:
        samples: a Samples.
        places: in the data file.
        seed: of the crops and flips, a list of whole numbers.
    """
    stored = np.asarray(samples.inputs[places])
    if samples.kind == "image":
        stored = cropped_and_flipped(stored, np.random.RandomState(seed))
    return as_numbers(stored, samples.normalisation), np.asarray(samples.targets[places]).astype(np.int32)


def as_numbers(stored, normalisation):
    """Tokens as they are; anything else as (x - subtract) / divide."""
    if normalisation is None:
        return stored.astype(np.int32)
    subtract, divide = (np.float32(normalisation[name]) for name in ("subtract", "divide"))
    return (stored.astype(np.float32) - subtract) / divide


def cropped_and_flipped(images, random):
    """Of each image a window of its own size out of the image with zeros around it, mirrored every other time."""
    count, channels, height, width = images.shape
    around = ((0, 0), (0, 0), (CROP_PADDING, CROP_PADDING), (CROP_PADDING, CROP_PADDING))
    padded = np.pad(images, around, mode="constant")
    down, right = random.randint(0, 2 * CROP_PADDING + 1, size=(2, count))
    rows = down[:, None] + np.arange(height)
    columns = right[:, None] + np.arange(width)
    mirrored = random.randint(0, 2, size=count).astype(bool)
    columns[mirrored] = columns[mirrored, ::-1]
    image, channel = np.arange(count)[:, None, None, None], np.arange(channels)[None, :, None, None]
    return padded[image, channel, rows[:, None, :, None], columns[:, None, None, :]]
