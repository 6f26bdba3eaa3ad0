"""Queries of OpenPAI's lists over the tables of the store."""
