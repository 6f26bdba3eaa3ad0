"""The control loop: a core that decides, in a shell that reads, stores and carries out."""
