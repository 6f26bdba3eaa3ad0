"""The built-in planner: order, quotas, backfill, preemption and consolidation."""
