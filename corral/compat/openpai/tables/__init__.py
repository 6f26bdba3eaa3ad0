"""OpenPAI's tables, and the queries of its lists over them and those of the store."""
