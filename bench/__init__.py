"""Measures Corral as a person would meet it: real servers, real processes, figures with bounds and reasons."""
