"""Install the editor before the tests, whose time limit is too short for it."""

from tests.testbeds.vscode import packages

packages.main()
