"""OpenID Connect: people sign in where their organisation keeps its accounts."""

from corral.service.openid.claims import Person
from corral.service.openid.flow import Begun, OpenId
from corral.service.openid.settings import OpenIdSettings

__all__ = ["Begun", "OpenId", "OpenIdSettings", "Person"]
