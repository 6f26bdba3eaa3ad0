"""Copy the logs of pods."""
