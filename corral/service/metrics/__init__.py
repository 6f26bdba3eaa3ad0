"""The page of metrics for Prometheus."""
