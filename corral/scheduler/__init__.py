"""Thinks where and when; touches nothing."""
