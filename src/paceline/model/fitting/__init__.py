"""From records to a calibration: what they say, its least-squares problem and solution, which run would tell most."""
