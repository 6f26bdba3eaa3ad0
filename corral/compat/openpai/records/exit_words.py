"""The reason, reproduction and solution that OpenPAI's API shows for each exit code."""

from __future__ import annotations

from typing import Final, NamedTuple


class ExitWords(NamedTuple):
    """The explanation of one exit code."""

    reason: str
    repro: tuple[str, ...]
    """Ways to bring it about on purpose."""
    solution: tuple[str, ...]


_WAIT: Final = "Nothing: the task is tried again by itself"
_ADMIN: Final = "Tell an administrator when it comes again"
_LOOK: Final = "Read the end of the task's log"
_FIX: Final = "Correct the program and submit the job anew"

_TABLE: Final = f"""
0 | the command ended without an error | a command that exits with 0 |
-100 | what the job keeps in the cluster was deleted by somebody else | delete the object of a running job \
| {_WAIT}; {_ADMIN}
-101 | the task's instance was deleted by somebody else | delete the pod or the process's container of a running task \
| {_WAIT}; {_ADMIN}
-110 | the cluster did not confirm what was made for the job in time | | {_WAIT}; {_ADMIN}
-111 | the cluster did not confirm the task's instance in time | | {_WAIT}; {_ADMIN}
-120 | the task could not be started for now | start a task while the API server does not answer | {_WAIT}; {_ADMIN}
-200 | the task as it was asked for cannot be started at all | ask for a field that the engine refuses \
| Correct the job file as the message says and submit it anew
-210 | somebody asked for the end of the job | stop a job that runs | Start the job again when that was not meant
-220 | the attempt of the job was over, and this task still ran | let one task decide a job of several tasks \
| Look at the task that ended the attempt
-230 | the role was given fewer tasks | make a role smaller while it runs | Nothing: it was asked for
-300 | the task's instance failed before its command was run | | {_ADMIN}
-310 | starting the task failed for a reason that nobody knows | | {_ADMIN}
-1000 | the machine ran short of something and put the task out | fill the disk of the task's machine | {_WAIT}; {_ADMIN}
-1001 | the machine was lost | cut a machine off from the network | {_WAIT}; {_ADMIN}
-1002 | the machine had not what the task was to get there | | {_WAIT}; {_ADMIN}
-1003 | the task made room for one that is more urgent | submit a job of a higher priority to a full cluster | {_WAIT}
-1004 | the task ran for longer than it was allowed to | set a limit that is shorter than the command takes \
| Allow more time, or ask for less work
-1005 | the machine refused the task for what it is | ask for a setting that the machine forbids \
| Correct the job file and submit it anew; {_ADMIN}
-1006 | the machine refused the task for no reason that is known | | {_WAIT}; {_ADMIN}
-1100 | the job could not be made in the cluster | submit a job that is larger than the cluster's store takes \
| Correct the job file and submit it anew
-1300 | a helper of the runtime used more memory than it has | | {_WAIT}; {_ADMIN}
-1200 | the program used more memory than the task asked for | fill the memory of a task \
| Ask for more memory; use less of it, by smaller batches for instance
-1201 | the container could not be made | name a mount that does not exist | Look at the message; {_ADMIN}
-1202 | the container's command may not be executed | | {_ADMIN}
-1203 | the container's command is not in the image | use an image without a shell | Use an image that has a shell; {_ADMIN}
-1204 | the container could not be started | | Look at the message; {_ADMIN}
-1205 | a device that the task was given is not on the machine | take a device away from a machine | {_WAIT}; {_ADMIN}
128 | a device may have reported an error of its memory | | {_LOOK}; {_ADMIN}
130 | the task got the signal SIGINT | send SIGINT to the command | {_WAIT}
131 | the task got the signal SIGQUIT | send SIGQUIT to the command | {_WAIT}
132 | the program ran an instruction that the processor does not have | run a program that was built for another processor \
| Use a program that was built for these machines
134 | the program ended itself by abort | call abort in the program | {_LOOK}; {_FIX}
135 | the program reached for memory in a way that the machine forbids | map a file and cut it short | {_LOOK}; {_FIX}
136 | the program calculated what cannot be | divide whole numbers by zero | {_LOOK}; {_FIX}
137 | the task got the signal SIGKILL | send SIGKILL to the command; use more memory than there is \
| {_WAIT}; Ask for more memory when it comes again
139 | the program reached for memory that is not its own | read through a null pointer | {_LOOK}; {_FIX}
141 | the program wrote to somebody who reads no more | write into a pipe whose reader has ended | {_LOOK}; {_FIX}
143 | the task got the signal SIGTERM | send SIGTERM to the command | {_WAIT}
220 | the command ended with an error | a command that exits with 1 | {_LOOK}; {_FIX}
221 | TensorFlow ran out of the device's memory | train with batches that are too large \
| Use smaller batches or a device with more memory
222 | a program under MPI reached for memory that is not its own | | {_LOOK}; {_FIX}
223 | a device reported an error of its memory that cannot be corrected | | {_WAIT}; {_ADMIN}
224 | CUDA in the image does not fit the machine's driver | use an image for a newer driver \
| Use an image whose CUDA the machine's driver knows
225 | cuDNN in the image is not the one that the program was built with | | Use an image whose cuDNN fits the program
226 | CUDA ran out of the device's memory | train with batches that are too large \
| Use smaller batches or a device with more memory
228 | the program was given a parameter that it does not take | call a program with an unknown option \
| {_LOOK}; Correct the command and submit the job anew
229 | the data and the model do not fit each other | | {_LOOK}; {_FIX}
230 | the program could not write to where it should save | save to a folder that does not exist \
| Make the folder first, or save to one that is there
231 | the program has an error of syntax | run a Python file that cannot be parsed | {_FIX}
232 | the program imports what is not installed | import a package that the image does not have \
| Install the package, or use an image that has it
233 | the program used an index outside of what there is | | {_FIX}
234 | the program reached for memory that is not its own | | {_LOOK}; {_FIX}
235 | the program's engine crashed and left a dump | | {_LOOK}; {_FIX}
249 | not all tasks could be reached by SSH in time | let the SSH server of one task fail \
| Allow more time for the barrier; see that every task's image has an SSH server
250 | the tasks of the job could not be told of each other for now | | {_WAIT}; {_ADMIN}
251 | not all tasks of the job got their devices in time | ask for more than is free, bit by bit \
| {_WAIT}; Ask for less, or try when the cluster is less busy
252 | the tasks of the job could not be told of each other | | {_ADMIN}
253 | a port that the task was given is in use on its machine | listen on a port of the machine that nobody was given \
| {_WAIT}; {_ADMIN}
254 | the image does not exist, or its registry does not give it | misspell the image's name \
| Correct the image's name; give the user and the password that its registry asks for
255 | the command failed with a code that is not in this list | a command that exits with 42 | {_LOOK}; {_FIX}
-8000 | the task ended with a negative code that is not in this list | | {_ADMIN}
256 | the runtime itself ended in a way that is not in this list | | {_WAIT}; {_ADMIN}
200 | the program says that its failure will pass | a command that exits with 200 | {_WAIT}
201 | the program says that it lost a contention | a command that exits with 201 | {_WAIT}
210 | the program says that its failure will come again | a command that exits with 210 | {_LOOK}; {_FIX}
"""
"""One row per code: code, reason, reproductions, solutions; semicolons separate several of them."""


def _listed(cell: str) -> tuple[str, ...]:
    return tuple(part.strip()[:1].upper() + part.strip()[1:] for part in cell.split(";") if part.strip())


def _read() -> dict[int, ExitWords]:
    found = {}
    for line in _TABLE.strip().splitlines():
        code, reason, repro, solution = (cell.strip() for cell in line.split("|"))
        found[int(code)] = ExitWords(reason[:1].upper() + reason[1:], _listed(repro), _listed(solution))
    return found


EXIT_WORDS: Final[dict[int, ExitWords]] = _read()
"""By code, the explanations of OpenPAI's 62 codes and of the three by which a program classifies its own failure."""
