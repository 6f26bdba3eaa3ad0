"""Cells of CSV files, which people open in spreadsheets."""

from __future__ import annotations


def csv_cell(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
