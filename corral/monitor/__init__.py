"""Mail from the server to its users."""
