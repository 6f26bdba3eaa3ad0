"""FrameworkController as a tenant: its `Framework` documents, and the variables and files of their tasks."""
