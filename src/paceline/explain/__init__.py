"""Why a step takes as long as it does, in words with evidence. Pure: reads records and calibrations, runs nothing."""
