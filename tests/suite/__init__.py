"""Run the tests in parallel lanes, repeat failed ones alone, and print a verdict, the timings and a count."""
