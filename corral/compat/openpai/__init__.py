"""OpenPAI and FrameworkLauncher as a tenant: their job files, REST API, tasks and imports."""
