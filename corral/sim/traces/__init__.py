"""The formats of published traces: a module for each, which the compat rows of the tables share."""
