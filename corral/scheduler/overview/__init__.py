"""Views of the scheduler's state: queues and their shares, the waiting list, cells and their owners."""

from corral.scheduler.overview.cells import CellTreeView
from corral.scheduler.overview.line import ahead_of, in_line, waiting_line
from corral.scheduler.overview.queues import queue_standings

__all__ = ["CellTreeView", "ahead_of", "in_line", "queue_standings", "waiting_line"]
