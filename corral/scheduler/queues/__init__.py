"""The tree of queues with quotas and usage, the waiting gangs, and their order."""
