"""The entry point of `corral`: imports only the requested command, and prints every error as one sentence."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import click


def main() -> NoReturn:
    """Run the `corral` command and exit."""
    if os.getpid() == 1:  # the kernel drops a SIGTERM for PID 1 of a container without a handler
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if sys.argv[1:] in (["version"], ["--version"], ["-V"]):  # answered without further imports
        from corral import __version__

        print(f"corral {__version__}")
        sys.exit(0)
    if sys.argv[1:] == ["serve", "control", "--check"] and (folder := os.environ.get("CORRAL_DATA_FOLDER")):
        from corral.cli.control_probe import control_answers

        sys.exit(0 if control_answers(folder) else 5)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; print every failure as one sentence on standard error."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # prints without click, which may not be imported yet
        print("Interrupted.", file=sys.stderr)
        return 130


def _run(arguments: list[str]) -> int:
    import click

    from corral.cli.command_table import corral
    from corral.cli.exit_codes import INTERRUPTED, USAGE, exit_code
    from corral.kernel.errors import CorralError

    try:
        result = corral.main(args=arguments, prog_name="corral", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return USAGE
    except CorralError as error:
        if os.environ.get("CORRAL_DEBUG"):
            raise
        _tell(error.message)
        return exit_code(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the pipe's reader is gone: no error
        return 0
    except Exception as error:
        if os.environ.get("CORRAL_DEBUG"):
            raise
        _tell(f"{_sentence(error)} (CORRAL_DEBUG=1 shows where)")
        return 1


def _tell(message: str) -> None:
    import click

    click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(message, err=True)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the system'}: {error.strerror}"
    return f"{type(error).__name__}: {error}"


def load(module: str, name: str) -> click.Command:
    """Return the command `name` of a module of `corral.cli`, or of one with a full name."""
    command: click.Command = getattr(import_module(module if "." in module else f"corral.cli.{module}"), name)
    return command


if __name__ == "__main__":
    main()
