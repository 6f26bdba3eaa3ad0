"""The suites that Corral has, and the rules that go with them."""
