"""What to change: ranked choices under a goal and limits, each with its reason. Pure: proposes, runs nothing."""
