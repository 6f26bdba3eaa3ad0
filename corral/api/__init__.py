"""The HTTP face of the server: routes, streams and sign-in over `service`; it decides nothing."""
