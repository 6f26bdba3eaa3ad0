"""Basic types for all other packages: ids, units, time, errors and random draws; standard library only."""
