"""Why: jars are fetched before the tests, whose time limit is none for a download."""

from tests.testbeds.hadoop import jars

jars.main()
