"""Tenants: the job languages and APIs of other systems, each in a package that registers with the packages below."""
