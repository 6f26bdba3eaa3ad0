"""The runtime plug-in of OpenPAI's tasks; it needs only the standard library and `corral.runtime`."""
