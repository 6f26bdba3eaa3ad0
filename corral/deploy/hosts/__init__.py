"""The list of hosts, `hosts.yaml`: its document, and Kubespray's inventories as such documents."""
