"""Control's metrics: what it has decided since its start, and the state of jobs, queues and machines."""
