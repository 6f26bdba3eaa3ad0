"""The forecast: when waiting jobs are likely to start, played in a forked process and shared by all who ask."""
