"""Programs that run inside a task on every engine: one zipapp that needs only the standard library."""
