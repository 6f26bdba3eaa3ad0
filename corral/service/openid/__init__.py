"""Sign-in with OpenID Connect at an external provider."""

from corral.service.openid.claims import Person
from corral.service.openid.flow import Begun, OpenId
from corral.service.openid.settings import OpenIdSettings

__all__ = ["Begun", "OpenId", "OpenIdSettings", "Person"]
