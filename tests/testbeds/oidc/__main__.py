"""Install packages before the tests, whose time limit is too short for a download."""

from tests.testbeds.oidc import packages

packages.main()
