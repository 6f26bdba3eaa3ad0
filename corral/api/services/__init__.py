"""Services of jobs in browsers: an origin for each job, and a proxy to the ports of its tasks."""
