"""What-if questions: play copies of the control core forward, as things are and with changes, in a process of their own."""
