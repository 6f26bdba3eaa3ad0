"""OpenPAI's job files, protocol v2 and v1: validated as OpenPAI does, and translated to the canonical document."""
