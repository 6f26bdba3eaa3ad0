"""The job and task state machines: step(state, event, now) -> (state, commands)."""
