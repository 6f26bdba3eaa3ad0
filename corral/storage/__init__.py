"""The only room that opens remote files, and the blob store for logs and code."""
