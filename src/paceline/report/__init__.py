"""Showing results. Receives finished numbers and returns text; computes nothing and reads no store.

Each module is imported by itself: a prediction must not load what a comparison needs.
"""
