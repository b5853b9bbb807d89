"""Hosts that are other machines: an agent on each, whatever brought it there."""
