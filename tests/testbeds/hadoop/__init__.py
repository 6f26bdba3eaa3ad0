"""A real Hadoop for tests, from Maven's jars, on the loopback; `python -m tests.testbeds.hadoop` fetches what lacks."""
