"""The loops that join thinking to doing (fold, plan, apply, collect, observe, lead); they own no rules."""
