"""`corral version` and `corral completion`."""

from __future__ import annotations

import click

from corral import __version__


@click.command("version")
@click.option("--server", is_flag=True, help="The server's version too.")
def version_command(server: bool) -> None:
    """Print the version."""
    click.echo(f"corral {__version__}")
    if server:
        from corral.client import Client

        with Client() as client:
            found = client.version()
        click.echo(f"server {found['version']} at {client.url} (API {found['api']})")


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion_command(shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash:  corral completion bash > ~/.local/share/bash-completion/completions/corral
    zsh:   corral completion zsh > "${fpath[1]}/_corral"
    fish:  corral completion fish > ~/.config/fish/completions/corral.fish
    """
    from click.shell_completion import get_completion_class

    from corral.cli.command_table import corral

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    click.echo(kind(corral, {}, "corral", "_CORRAL_COMPLETE").source())
