"""The health of nodes: what is seen of them becomes signs for the ledger, check scripts run, validations are judged."""
