"""Judge what was found on hosts: facts that a probe printed become findings, each failure with its remedy."""
