"""What runs inside a framework's own environment: Python 3.6 or later, standard library only.

Reads one JSON job, trains, writes JSON event lines. Shares files with the host, never imports. Only `builders`
and `frameworks` may import the framework they are named after (and NumPy, which every environment has).
"""
