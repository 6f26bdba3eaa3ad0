"""The portal, in a browser against a real server."""
