"""What a caller may do: decide, validate, write intent, read views; used by every version of the API."""

from corral.service.actor import Actor
from corral.service.base import ControlDoor
from corral.service.rules import Decision, Resource, decide
from corral.service.service import Service

__all__ = ["Actor", "ControlDoor", "Decision", "Resource", "Service", "decide"]
