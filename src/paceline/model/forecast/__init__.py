"""From a calibration, or from data sheets, to step times of configurations that were never run."""
