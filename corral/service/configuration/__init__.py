"""Read and change the documents that configure the cluster, and what queue managers may change."""
