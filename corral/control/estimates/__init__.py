"""Estimates of starts that control gives: they are kept with what comes true, beside the control loop."""
