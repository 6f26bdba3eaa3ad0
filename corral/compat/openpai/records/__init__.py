"""The JSON shapes and the terms of OpenPAI's API."""
