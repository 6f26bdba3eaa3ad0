"""The zipapp's entry point.

`run PLAN` runs around a command, `mount …` before it, `beside …` in a sidecar container, `slot …` in a YARN container,
and `agent …` for launchers.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run the mode that the first argument names; the exit code of the process."""
    if sys.argv[1:2] == ["agent"]:
        from corral.runtime.agent import main as agent

        return agent(sys.argv[2:])
    if sys.argv[1:2] == ["run"] and len(sys.argv) == 3:
        from corral.runtime.run import main as run

        return run(sys.argv[2])
    if sys.argv[1:2] == ["mount"] and len(sys.argv) > 3:
        from corral.runtime.mounting import main as mount

        return mount(sys.argv[2], sys.argv[3:])
    if sys.argv[1:2] == ["beside"] and len(sys.argv) == 4:
        from corral.runtime.beside import main as beside

        return beside(sys.argv[2], sys.argv[3])
    if sys.argv[1:2] == ["slot"] and len(sys.argv) == 4:
        from corral.runtime.slot import main as slot

        return slot(sys.argv[2], sys.argv[3])
    print(
        "usage: runtime run PLAN | runtime mount SPEC COMMAND... | runtime beside GIVEN PRIVATE | "
        "runtime slot FILE INSTANCE | runtime agent ...",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
