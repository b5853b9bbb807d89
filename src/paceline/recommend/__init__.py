"""Ranks configurations by a goal within limits, each with its reason. Pure: proposes, runs nothing."""
