"""`corral topology`: show how Corral reads a node's link matrix or a topology.conf, before it becomes a document."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corral.cli.exit_codes import OK

if TYPE_CHECKING:
    from corral.spec.device_topology import Wiring
    from corral.spec.expanded_machines import Cells
    from corral.spec.slurm_topology import Switches


@click.command("topology")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "-o", "--output", type=click.Choice(("tree", "yaml")), default="tree", show_default=True,
    help="A picture of the tree, or a cluster document to go on from.",
)  # fmt: skip
def topology_command(file: str, output: str) -> int:
    """Show the cells that FILE describes: a node's link matrix, or Slurm's topology.conf (- reads standard input).

    \b
    nvidia-smi topo -m | corral topology -
    corral topology /etc/slurm/topology.conf -o yaml > cluster.yaml
    """
    from corral.spec.link_table import read_table
    from corral.spec.slurm_topology import is_switches, read_switches

    raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    text, shown = raw.decode(errors="replace"), "standard input" if file == "-" else file
    if is_switches(text):
        switches = read_switches(text, shown)
        lines = _network(switches) if output == "tree" else [_yaml(switches.to_document())]
    else:
        wiring = read_table(text, shown)
        lines = _machine(wiring) if output == "tree" else [_yaml(_node(wiring, text))]
    for line in lines:
        click.echo(line)
    return OK


def _network(switches: Switches) -> Iterator[str]:
    leaves = [((*cells, ("", names)), names) for names, cells in switches.nodes.items()]
    yield "network"
    yield from _tree([(cells[:-1], names) for cells, names in leaves])


def _machine(wiring: Wiring) -> Iterator[str]:
    yield f"node with {len(wiring.names)} devices"
    yield from _tree(list(zip(wiring.cells(), wiring.names, strict=True)))
    yield ""
    yield from _ways(wiring)


def _tree(leaves: Sequence[tuple[Cells, str]], indent: str = "") -> Iterator[str]:
    """Yield the lines of a tree; leaves without a cell of their own share one line."""
    inside: dict[tuple[str, str], list[tuple[Cells, str]]] = {}
    for cells, name in leaves:
        inside.setdefault(cells[0] if cells else ("", ""), []).append((cells[1:], name))
    for at, ((level, cell), below) in enumerate(inside.items()):
        last = at == len(inside) - 1
        branch, further = ("└─ ", "   ") if last else ("├─ ", "│  ")
        names = " ".join(name for cells, name in below if not cells)
        if not level:
            yield f"{indent}{branch}{names}"
        elif names:
            yield f"{indent}{branch}{level} {cell}: {names}"
        else:
            yield f"{indent}{branch}{level} {cell}"
            yield from _tree(below, indent + further)


def _ways(wiring: Wiring) -> Iterator[str]:
    """Yield the number of device pairs per link type, best first."""
    size = range(len(wiring.names))
    counts = Counter(wiring.links[a][b] for a in size for b in size if a < b)
    for quality, count in sorted(counts.items(), reverse=True):
        yield f"{count} pair{'' if count == 1 else 's'}: {_spoken(quality)}"


def _spoken(quality: int) -> str:
    from corral.spec.link_quality import NVLINK, QUALITY

    if quality > NVLINK:
        links = quality - NVLINK
        return f"{links} link{'' if links == 1 else 's'} of their own (NVLink, XGMI, HCCS)"
    return {
        QUALITY["PIX"]: "one PCIe bridge (PIX)",
        QUALITY["PXB"]: "several PCIe bridges (PXB)",
        QUALITY["PHB"]: "a PCIe host bridge (PHB)",
        QUALITY["NODE"]: "inside one NUMA node (NODE)",
        QUALITY["SYS"]: "across NUMA nodes (SYS)",
    }.get(quality, "unknown")


class _Block(str):
    """Text that is written as a YAML block, line by line."""


def _node(wiring: Wiring, text: str) -> dict[str, Any]:
    """Return a cluster document whose nodes all have this wiring."""
    matrix = _Block("".join(f"{line.rstrip()}\n" for line in map(_without_tabs, text.splitlines()) if line.strip()))
    return {"kind": "Cluster", "node": {"devices": {"count": len(wiring.names), "matrix": matrix}}, "nodes": ["node1"]}


def _without_tabs(line: str) -> str:
    """Replace tabs by spaces, which YAML needs, and write an empty entry as `-` so that it still counts."""
    if "\t" not in line:
        return line
    first, *words = (word.strip() for word in line.split("\t"))
    return "  ".join([f"{first:6}", *(f"{word or '-':5}" for word in words)])


def _yaml(document: dict[str, Any]) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_representer(
        _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")
    )
    return str(yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=4096)).rstrip("\n")
