"""Alert rules in Prometheus' format: parse them, evaluate them over series, and follow the state of alerts."""
