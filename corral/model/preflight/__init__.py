"""What tasks checked before their commands began: the network of a gang, and their machines."""
