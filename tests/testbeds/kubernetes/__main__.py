"""Build missing programs before pytest starts, so that no test waits for a compiler."""

import sys

from tests.testbeds.kubernetes.binaries import main

main(sys.argv[1:])
