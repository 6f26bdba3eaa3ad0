"""Certificates of Hadoop's daemons, signed by an authority of the test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from tests.reserved import free_port
from tests.testbeds.hadoop.configuration import write_configuration
from tests.testbeds.kubernetes.certificates import Authority

_PASSWORD: Final = "of-the-test"


class Tls:
    """One certificate for all daemons of an HDFS at 127.0.0.1."""

    def __init__(self, configuration: Path, home: Path) -> None:
        """Their XML files are written into `configuration`."""
        authority = Authority(home)
        self.authority = authority.certificate
        """The file with the certificate of who signed it."""
        certificate, key = authority.server("hadoop", ["127.0.0.1"])
        store = home / "hadoop.p12"
        store.write_bytes(_store(certificate.read_bytes(), key.read_bytes()))
        names = {"keystore.location": store, "keystore.type": "pkcs12"}
        names |= dict.fromkeys(("keystore.password", "keystore.keypassword"), _PASSWORD)
        write_configuration(configuration / "ssl-server.xml", {f"ssl.server.{at}": what for at, what in names.items()})
        self.port, self._data = free_port(), free_port()
        self.web = f"swebhdfs://127.0.0.1:{self.port}"
        """The address of WebHDFS."""

    def settings(self) -> Mapping[str, object]:
        """The settings of hdfs-site.xml."""
        return {
            "dfs.http.policy": "HTTP_AND_HTTPS",
            "dfs.namenode.https-address": f"127.0.0.1:{self.port}",
            "dfs.datanode.https.address": f"127.0.0.1:{self._data}",
        }


def _store(certificate: bytes, key: bytes) -> bytes:
    """A PKCS 12 file with a certificate and its key."""
    private = serialization.load_pem_private_key(key, None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    signed = x509.load_pem_x509_certificate(certificate)
    lock = serialization.BestAvailableEncryption(_PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(b"hadoop", private, signed, None, lock)
