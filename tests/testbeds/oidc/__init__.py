"""A real OpenID provider for tests, from npm, on loopback; `python -m tests.testbeds.oidc` installs missing packages."""
