"""Hadoop that asks for Kerberos: storage, the YARN engine and its doctor, with one real KDC."""
