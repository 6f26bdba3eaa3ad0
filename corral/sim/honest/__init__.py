"""Mode *honest* of the published tables: the scheduler of production under Corral's own semantics.

A module for each table says what is played for a row (`pieces`), and plays one piece (`play`). What all tables assume is in
`settings`.
"""
