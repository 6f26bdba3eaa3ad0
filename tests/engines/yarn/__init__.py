"""The YARN engine on a real YARN."""
