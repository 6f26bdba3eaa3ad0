"""OpenPAI's view of jobs, accounts and clusters, for its clients."""
