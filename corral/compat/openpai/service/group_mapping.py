"""Translate between OpenPAI's groups and Corral's roles and grants.

OpenPAI uses groups to say who is an administrator and who may use what. One directory of all groups does the
translation, so that lists, single answers and changes agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from corral.compat.openpai.records.accounts import OpenPaiGroup, OpenPaiUser
from corral.compat.openpai.service.errors import OpenPaiRefusal, bad_parameters, no_group
from corral.model.accounts import ADMIN_GROUP, DEFAULT_GROUP, Group, User
from corral.service.people.groups import ALL, BUILT_IN

DEFAULT_CLUSTER: Final = "default"
"""The virtual cluster that every account of OpenPAI has."""
ACLS: Final = "acls"
MOST_EXTENSION: Final = 256 * 1024
"""Most bytes of an extension as JSON."""


class _Acls(msgspec.Struct, frozen=True, rename="camel"):
    admin: bool = False
    virtual_clusters: tuple[str, ...] = ()
    storage_configs: tuple[str, ...] = ()


class NoCluster(OpenPaiRefusal):
    """An account is given a virtual cluster that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__("NoVirtualClusterError", f"Virtual cluster {name[:200]} is not found.", status=400)
        self.name = name


class Directory(NamedTuple):
    """All groups, and all queues in display order."""

    groups: Mapping[str, Group]
    queues: tuple[str, ...]
    granted: frozenset[str]
    """The queues that only members of a group may use."""

    def group(self, name: str) -> Group:
        """One group.

        Raises OpenPaiRefusal NoGroupError.
        """
        found = self.groups.get(name)
        if found is None:
            raise no_group(name)
        return found

    def is_admin(self, user: User) -> bool:
        """Whether an account is an administrator's, by its role or by a group."""
        return user.role == "admin" or any(group.admin for group in self._of(user))

    def shown(self, user: User, *, whole: bool) -> OpenPaiUser:
        """An account as OpenPAI's clients see it; unless `whole`, without email and extension."""
        return OpenPaiUser(
            user.name,
            user.memberships,
            user.email if whole else "",
            user.extension if whole else {},
            self.is_admin(user),
            self.clusters(self._of(user), everything=self.is_admin(user)),
            tuple(dict.fromkeys(name for group in self._of(user) for name in group.storages if name != ALL)),
        )

    def clusters(self, groups: Iterable[Group], *, everything: bool) -> tuple[str, ...]:
        """The virtual clusters that members of these groups may use."""
        names = {name for group in groups for name in group.queues}
        if everything or ALL in names:
            return self.queues
        return tuple(name for name in self.queues if name in names or name not in self.granted)

    def shown_group(self, group: Group) -> OpenPaiGroup:
        """A group as OpenPAI's clients see it."""
        granted = self.queues if ALL in group.queues else group.queues
        if group.name == DEFAULT_GROUP:
            granted = self.clusters([group], everything=False)
        acls = {
            **_mapping(group.extension.get(ACLS)),
            "admin": group.admin,
            "virtualClusters": list(granted),
            "storageConfigs": [name for name in group.storages if name != ALL],
        }
        return OpenPaiGroup(group.name, group.description, group.external_name, group.extension | {ACLS: acls})

    def changed(self, group: Group, extension: Mapping[str, Any], *, merge: bool) -> Group:
        """The group with another extension, whose `acls` become the group's grants.

        Raises OpenPaiRefusal InvalidParametersError.
        """
        shown = self.shown_group(group).extension
        whole = {**shown, **extension} if merge else dict(extension)
        bounded(whole)
        acls = whole.pop(ACLS, {})
        try:
            told = msgspec.convert(acls, _Acls)
        except msgspec.ValidationError as error:
            raise bad_parameters(f"extension.acls does not fit: {error}.") from None
        rest = {key: value for key, value in acls.items() if key not in _GRANTS}
        as_shown = msgspec.convert(shown[ACLS], _Acls)
        return msgspec.structs.replace(
            group,
            queues=(
                group.queues
                if told.virtual_clusters == as_shown.virtual_clusters
                else self._granting(group, told.virtual_clusters)
            ),
            storages=group.storages if told.storage_configs == as_shown.storage_configs else told.storage_configs,
            admin=told.admin or group.name == ADMIN_GROUP,
            extension={**whole, ACLS: rest} if rest else whole,
        )

    def _granting(self, group: Group, clusters: Sequence[str]) -> tuple[str, ...]:
        """The queues to grant to a group for these virtual clusters, without those that a grant would close.

        A queue is open to everybody until some group grants it. OpenPAI lists `default` in every list of virtual
        clusters, so it is not granted while it is open. The group `default` shows all open queues, so it is granted
        none of them.
        """
        everybodys = set(self.queues) - self.granted
        if group.name != DEFAULT_GROUP:
            everybodys &= {DEFAULT_CLUSTER}
        return tuple(name for name in clusters if name not in everybodys)

    def named(self, names: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """The groups and the role of an account in the groups of these names.

        Raises OpenPaiRefusal NoGroupError.
        """
        wanted = tuple(dict.fromkeys(names))
        for name in wanted:
            self.group(name)
        return tuple(name for name in wanted if name != ADMIN_GROUP), "admin" if ADMIN_GROUP in wanted else "user"

    def groups_for(self, clusters: Sequence[str], before: Sequence[str]) -> tuple[tuple[str, ...], list[Group]]:
        """The groups that grant these virtual clusters, and those of them that must be created.

        They are the default group, those of `before` that grant nothing else, and a group for each remaining virtual
        cluster, usually of the same name. A members-only virtual cluster without a group gets one. An open one gets
        none, because a grant would close it to others.

        Raises NoCluster.
        """
        wanted = dict.fromkeys(clusters)
        for cluster in wanted:
            if cluster not in self.queues:
                raise NoCluster(cluster)
        kept = [DEFAULT_GROUP]
        kept += [name for name in before if name in self.groups and wanted.keys() >= set(self.groups[name].queues)]
        have = {queue for name in kept for queue in self.groups[name].queues}
        new: list[Group] = []
        for cluster in wanted:
            if cluster in have:
                continue
            name = self._group_for(cluster)
            found = self.groups.get(name)
            if found is None and cluster in self.granted:
                found = Group(name, queues=(cluster,), description=f"group for vc {cluster}")
                new.append(found)
            if found is not None:
                kept.append(found.name)
        return tuple(dict.fromkeys(kept)), new

    def _group_for(self, cluster: str) -> str:
        """The name of a virtual cluster's group, existing or not: the cluster's own, unless another group has it."""
        for name in (cluster, *(f"{cluster}_vc{number or ''}" for number in range(len(self.groups) + 1))):
            found = self.groups.get(name)
            if found is None or (cluster in found.queues and not found.admin):
                return name
        raise AssertionError("there are more names than groups")

    def _of(self, user: User) -> list[Group]:
        return [self.groups[name] for name in user.memberships if name in self.groups]


def directory(groups: Iterable[Group], queues: Sequence[str], granted: frozenset[str]) -> Directory:
    """Build the directory from stored groups and queues, with the built-in groups."""
    return Directory(BUILT_IN | {group.name: group for group in groups}, tuple(queues) or ("default",), granted)


def bounded(extension: Mapping[str, Any]) -> None:
    """Refuse an extension above `MOST_EXTENSION`.

    Raises OpenPaiRefusal InvalidParametersError.
    """
    if len(msgspec.json.encode(extension)) > MOST_EXTENSION:
        raise bad_parameters(f"The extension may have {MOST_EXTENSION // 1024} KiB of JSON at most.")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_GRANTS: Final = frozenset({"admin", "virtualClusters", "storageConfigs"})
