"""The words everything else is written in: ids, units, time, errors and draws; standard library only."""
