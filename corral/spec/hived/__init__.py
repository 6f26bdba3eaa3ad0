"""HiveD's configuration: read, validate, import and export."""
