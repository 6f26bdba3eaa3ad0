"""Job documents of other systems: how their dialects are found, and what they need to translate field by field."""
