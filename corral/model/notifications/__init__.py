"""Notifications of jobs: what may be told of a job, to which channels of a person, and in which words."""
