"""A training step as terms: what it costs for parameters and conditions, in closed form and as events."""
