"""The model of all machines: engines, topology, devices, and what running gangs hold of them."""
