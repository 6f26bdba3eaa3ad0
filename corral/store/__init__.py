"""The one truth, and the only room that speaks SQL."""
