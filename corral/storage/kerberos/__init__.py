"""Kerberos for calls of Hadoop over HTTP: tickets from a keytab or a ticket cache, and SPNEGO."""
