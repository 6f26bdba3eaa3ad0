"""A small DRA driver for kubelets: publishes described devices and allots each to one claim at a time."""
