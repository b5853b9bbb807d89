"""The cost of a training step, term by term, in closed form and by event simulation."""
