"""One KDC, and one HDFS and one YARN that ask for Kerberos, for all modules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testbeds import kerberos
from tests.testbeds.hadoop import jars
from tests.testbeds.hadoop.secure_hdfs import CORRAL, SecureHdfs
from tests.testbeds.hadoop.secure_yarn import SecureYarn
from tests.testbeds.kerberos import Kdc


@pytest.fixture(scope="package")
def realm() -> Iterator[Kdc]:
    """A KDC with keytabs of Ada, Ben, Corral and the daemons of localhost."""
    if reason := kerberos.missing():
        pytest.skip(reason)
    with Kdc() as made:
        for each in ("ada", "ben", CORRAL, "HTTP/localhost"):
            made.keytab(each)
        yield made


@pytest.fixture
def kdc(realm: Kdc, monkeypatch: pytest.MonkeyPatch) -> Kdc:
    """The KDC, which runs, and whose realm this process knows; this process has no ticket of anybody."""
    for name, value in realm.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)
    realm.start()
    return realm


@pytest.fixture(scope="package")
def hdfs(realm: Kdc) -> Iterator[SecureHdfs]:
    """An HDFS with folders of Ada's and Corral's, and one that is Ben's alone."""
    if reason := jars.missing():
        pytest.skip(reason)
    realm.start()
    with SecureHdfs(realm) as made:
        for path, owner in {"/ada": "ada", "/apps/corral": CORRAL, "/closed": "ben"}.items():
            made.add_folder(path, owner)
        for user in ("ada", CORRAL):
            made.add_folder(f"/user/{user}", user)
        made.ask("PUT", "/closed", "SETPERMISSION", permission="700")
        yield made


@pytest.fixture(scope="package")
def cluster(realm: Kdc, hdfs: SecureHdfs) -> Iterator[SecureYarn]:
    """A YARN with one node over that HDFS."""
    realm.start()
    with SecureYarn(hdfs, realm, 1) as made:
        yield made


@pytest.fixture
def yarn(cluster: SecureYarn, kdc: Kdc) -> SecureYarn:
    """The YARN, whose realm this process knows."""
    return cluster
