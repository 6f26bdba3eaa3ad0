"""Access rules, the messages of refusals, and the limits on priorities."""
