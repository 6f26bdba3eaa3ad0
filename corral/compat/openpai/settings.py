"""The settings of OpenPAI's API."""

from __future__ import annotations

from pydantic import Field

from corral.service.tenant_settings import TenantSettings


class OpenPaiSettings(TenantSettings):
    """Settings of OpenPAI's API, in the same way as the server's own."""

    openpai_fs_uri: str = Field(
        default="",
        pattern=r"^$|^[a-z][a-z0-9+.-]*://.*[^/]$",
        description="For jobs of OpenPAI's YARN era: the file system (`hdfs://HOST:PORT`, `file:///shared`) that "
        "`$PAI_DEFAULT_FS_URI` and paths without a scheme stand for. Empty: that of the machine, and no authFile is read.",
    )
    openpai_anonymous_reads: bool = Field(
        default=False,
        description="Whether jobs are read under `/api/v1` without a token, as in OpenPAI's YARN era.",
    )
    openpai_origins: str = Field(
        default="*",
        description="The origins, separated by commas, whose pages may call OpenPAI's API (`/api/v1`, `/api/v2`) from a "
        "browser, with a token and never with cookies; `*` is any, as with OpenPAI, and empty none. Corral's own "
        "`/api/v3` is open to no other origin.",
    )
    openpai_return_urls: str = Field(
        default="",
        description="Where OpenPAI's `/authn/oidc/login?redirect_uri=` may send people with their token in the address, "
        "as its portal had it: addresses that begin so, separated by commas. Empty: only to this server's own "
        "pages, and without the token, which stands in a cookie.",
    )
    openpai_calls_per_minute: int = Field(
        default=600, ge=0, description="How many calls one user may make in a minute at OpenPAI's API; 0 is no limit."
    )
    openpai_lists_per_minute: int = Field(
        default=120, ge=0, description="How many of them may be lists of jobs; 0 is no limit of their own."
    )
    openpai_submits_per_hour: int = Field(
        default=3600, ge=0, description="How many jobs one user may submit in an hour at OpenPAI's API; 0 is no limit."
    )
