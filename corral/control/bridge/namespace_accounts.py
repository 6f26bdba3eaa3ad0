"""Map namespaces to the accounts that their objects are submitted as; only an administrator sets this."""

from __future__ import annotations

from fnmatch import fnmatchcase

from corral.kernel.errors import InvalidInput


class AccountsOfNamespaces:
    """The accounts that the objects of namespaces are submitted as."""

    def __init__(self, text: str) -> None:
        """`text` is a list of NAMESPACE=ACCOUNT, separated by commas. NAMESPACE may have `*`; the first match counts.

        Raises InvalidInput that quotes the invalid namespace.
        """
        pairs = [word.partition("=") for word in text.replace(",", " ").split()]
        for namespace, _, account in pairs:
            if not namespace or not account:
                message = f"object_accounts is a list of NAMESPACE=ACCOUNT, separated by commas; {namespace!r} is none."
                raise InvalidInput("bad-setting", message)
        self._pairs = tuple((namespace, account) for namespace, _, account in pairs)

    def __bool__(self) -> bool:
        """Whether any namespace is mapped."""
        return bool(self._pairs)

    def of(self, namespace: str) -> str:
        """The account of a namespace, "" for none."""
        return next((account for pattern, account in self._pairs if fnmatchcase(namespace, pattern)), "")
