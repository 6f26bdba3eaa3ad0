"""VS Code for browsers, code-server from npm, for tests; `python -m tests.testbeds.vscode` installs it."""
