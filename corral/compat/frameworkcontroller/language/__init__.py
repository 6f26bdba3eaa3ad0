"""FrameworkController's `Framework` document: translated to a job, and mirrored as a Kubernetes object."""
