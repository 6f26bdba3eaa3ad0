"""HiveD's inspection API as a tenant; its algorithm and its configuration are the core's."""
