"""HiveD as a planner: its algorithm, and the adapter between its pods and Corral's gangs."""
