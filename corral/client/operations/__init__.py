"""Every operation of the API, once: a function that says what to ask, in the words that both clients' methods have."""

from corral.client.operations import accounts, cluster, configuration, jobs, streams, teams

__all__ = ["accounts", "cluster", "configuration", "jobs", "streams", "teams"]
