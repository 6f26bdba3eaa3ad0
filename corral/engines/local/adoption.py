"""Why: a server that starts must know every attempt of the servers before it, and settle those that never came to run."""

from __future__ import annotations

from corral.engines.local import processes
from corral.engines.local.folders import AttemptFolder, EndRecord, LaunchRecord, attempts_in
from corral.engines.local.live import NEVER_STARTED, STOP_REQUESTED, LiveAttempt


def recover(root: str, trash: str) -> list[LiveAttempt]:
    """Every attempt that has a folder, as the folder tells it; nothing is signalled and nothing watched yet.

    An attempt that no shim has, or ever will have, is dropped, so that a repeated start is its first; unless it was to be
    stopped: then that is its end.
    """
    carrying = {attempt for _, attempt in processes.marked()}
    found: list[LiveAttempt] = []
    for attempt in attempts_in(root):
        folder = AttemptFolder(root, attempt)
        live = LiveAttempt(attempt, folder, folder.launch() or LaunchRecord(""))
        live.process, live.stop, live.end = folder.process(), folder.stop(), folder.ended()
        if _never_started(live, has_processes=attempt in carrying):
            if live.stop is None:
                folder.discard(trash)
                continue
            live.end = EndRecord(STOP_REQUESTED, NEVER_STARTED)
            folder.write_ended(live.end)
        found.append(live)
    return found


def _never_started(live: LiveAttempt, *, has_processes: bool) -> bool:
    """Whether no shim has, or ever will have, this attempt.

    Either the right to run it could be taken, or a shim was killed while it took it: before the command.
    """
    folder = live.folder
    if live.process is not None or live.end is not None or folder.exit_code() is not None:
        return False
    return folder.claim() or folder.claimed() or not has_processes
