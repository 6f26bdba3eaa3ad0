"""A real OpenID provider for tests, from npm, on the loopback; `python -m tests.testbeds.oidc` installs what lacks."""
