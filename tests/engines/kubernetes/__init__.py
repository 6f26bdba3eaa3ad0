"""The Kubernetes engine, on a real control plane and under a real kubelet."""
