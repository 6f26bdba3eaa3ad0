"""A small DRA driver for kubelets: publishes described devices, and gives each to one claim at a time."""
