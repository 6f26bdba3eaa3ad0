"""Find a place for a gang: whole or not at all, in the narrowest cell that fits."""
