"""Discovery of devices, the links between them and their health."""
