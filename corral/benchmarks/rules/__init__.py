"""Rules over results: a small grammar of criteria, and what becomes of a node that breaks one."""
