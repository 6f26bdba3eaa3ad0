"""Fetch the jars before the tests, whose time limit is too short for a download."""

from tests.testbeds.hadoop import jars

jars.main()
