"""Keep the values of metrics over time: the last day in steps of 15 s, and 90 days in steps of 10 min."""
