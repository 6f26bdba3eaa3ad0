"""Runs the tests: in parallel lanes, failed ones once more alone, with a verdict, the time spent and a count at the end."""
