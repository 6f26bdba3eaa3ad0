"""A real Hadoop for tests, from Maven's jars, on loopback; `python -m tests.testbeds.hadoop` fetches missing jars."""
