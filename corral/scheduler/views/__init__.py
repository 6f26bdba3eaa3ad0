"""Views of the scheduler's state: queues and their shares, the waiting list, cells and their owners."""

from corral.scheduler.views.cell_tree import CellTreeView
from corral.scheduler.views.queue_standings import queue_standings
from corral.scheduler.views.waiting_list import ahead_of, in_line, job_can_start, waiting_line

__all__ = ["CellTreeView", "ahead_of", "in_line", "job_can_start", "queue_standings", "waiting_line"]
