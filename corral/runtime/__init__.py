"""What runs inside a task on every engine: one zipapp, from the standard library alone."""
