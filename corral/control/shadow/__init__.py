"""A candidate policy beside the one in force: both decide on a journal's inputs, and the decisions are compared."""
