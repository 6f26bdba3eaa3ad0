"""The published simulators' own semantics, bugs included, for the compat rows of the tables.

This package is the only part of the simulator with rules of its own: a row shows that our number equals the anchor's. The
scheduler does not import it, and no job is scheduled by it.
"""
