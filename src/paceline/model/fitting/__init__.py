"""From records to a calibration: observations, the least-squares problem and its solution, and the next run to make."""
