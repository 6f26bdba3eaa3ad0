"""Alnair's `UnifiedJob` document: translated to a job, and mirrored as a Kubernetes object."""
