"""Heterogeneity-aware time sharing, after Gavel (Narayanan et al., OSDI 2020).

A linear program gives each job a fraction of time on each model of device (`programs`). A greedy choice, made again and
again, gives the devices to the jobs that lag most behind their fractions (`choice`). `part` makes a policy's part of them.
"""
