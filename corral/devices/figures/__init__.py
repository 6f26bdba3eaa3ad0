"""What accelerators do at one time: use, memory, temperature, power, clocks and errors, read from each vendor's source."""
