"""Make the root of hosts and their bundles before pytest starts, so that no test waits for debootstrap or a compiler."""

import sys

from tests.testbeds.hosts import bundle, fetched, hadoop
from tests.testbeds.hosts.roots import missing, root

if reason := missing():
    print(f"{reason}: the tests on hosts of our own will skip", file=sys.stderr)
elif reason := bundle.missing():
    root()
    print(f"{reason}: the tests of a cluster on hosts of our own will skip", file=sys.stderr)
else:
    bundle.bundle()
    bundle.later()
    fetched.registry()
if not hadoop.missing():
    hadoop.bundle()
