"""OpenPAI's job files, protocol v2 and v1: checked as OpenPAI checks them, and translated into the canonical document."""
