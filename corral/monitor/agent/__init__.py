"""The collector of a node: measures tasks, devices and the machine, and makes samples of what it finds."""
