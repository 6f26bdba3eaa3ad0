"""Benchmarks of Corral on real servers and real processes; `bounds.toml` holds their bounds and reasons."""
