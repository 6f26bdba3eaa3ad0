"""Make the root of hosts before pytest starts, so that no test waits for debootstrap."""

import sys

from tests.testbeds.hosts.roots import missing, root

if reason := missing():
    print(f"{reason}: the tests on hosts of our own will skip", file=sys.stderr)
else:
    root()
