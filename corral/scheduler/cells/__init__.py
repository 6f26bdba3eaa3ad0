"""Cells that virtual clusters own, and the placement of gangs in their owner's cells."""
