"""Alnair as a tenant: its `UnifiedJob` documents."""
