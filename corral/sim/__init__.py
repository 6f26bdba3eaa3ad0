"""The simulator: traces, a virtual clock and reports over the very scheduler, launcher and control that production runs."""
