"""The performance model of a training step. Pure: records and tables in, calibrations and predictions out.

    equations    what a step costs, term by term
    fitting      from records to a calibration
    forecast     from a calibration, or data sheets, to what was never run
    foreign      traces and tables of other tools
    validation   how wrong predictions are, beside baselines of others

Each room imports only those above it; `foreign` and `forecast` do not know each other.
"""
