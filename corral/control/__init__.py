"""The control process: fold events, plan, commit, then act; the rules live in other packages."""

from corral.control.accounts import Accounts
from corral.control.door import Door
from corral.control.housekeeping import Housekeeping
from corral.control.lead import Leadership
from corral.control.loop import Control
from corral.control.render import LaunchContext
from corral.control.seeding import seed

__all__ = ["Accounts", "Control", "Door", "Housekeeping", "LaunchContext", "Leadership", "seed"]
