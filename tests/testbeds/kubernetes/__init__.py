"""A real Kubernetes 1.34 for tests, built from source once and started on loopback ports of its own.

Usage: `with ControlPlane() as plane: plane.kubeconfig, plane.url, plane.token, plane.ca` (module `controlplane`); as a
fixture `control_plane` (tests/engines/kubernetes/conftest.py). `python -m tests.testbeds.kubernetes` builds missing
parts.
"""
