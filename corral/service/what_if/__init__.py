"""What-if questions: check what a caller asks, have control play it, and compare the courses."""
