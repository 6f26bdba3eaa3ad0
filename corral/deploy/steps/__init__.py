"""Plan what is done on each host, as a function of the list of hosts and of the facts."""
