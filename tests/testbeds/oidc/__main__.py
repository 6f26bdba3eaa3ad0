"""Why: packages are installed before the tests, whose time limit is none for a download."""

from tests.testbeds.oidc import packages

packages.main()
