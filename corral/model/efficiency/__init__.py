"""What jobs asked for, beside what they used."""
