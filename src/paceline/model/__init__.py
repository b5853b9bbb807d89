"""The performance model of a training step. Pure: records and tables in, calibrations and predictions out.

    equations    the cost of a step, term by term
    fitting      from records to a calibration
    forecast     from a calibration or data sheets to predictions
    foreign      traces and tables of other tools
    validation   prediction errors, compared with published baselines

Each folder imports only those above it; `foreign` and `forecast` do not import each other.
"""
