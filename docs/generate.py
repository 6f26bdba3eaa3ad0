"""Generate reference pages, schemas, diagrams and pictures from the code.

`python docs/generate.py` (`make docs`) writes the reference pages, the JSON schemas, the diagrams in `architecture.md`
and the pictures of `scheduling.md`; `--check` names the files that are out of date and exits 1, as does a test.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic.fields import FieldInfo

DOCS = Path(__file__).resolve().parent
NOTE = "This page is generated from the code; `make docs` writes it anew."
BLOCK = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
REFUSALS = """Every refusal is `{"code": …, "message": …}`: the code is for programs and stays, the message is one sentence
that says what to do. 400 and 422 mean that the request is malformed, 401 that no valid token came with it, 403 that the
caller may not do this, 404 that there is no such thing for the caller, 409 that the state of things forbids it now, 413
that the body passes a bound, 429 that a rate limit was passed, and 503 (with Retry-After) that something underneath does
not answer at the moment.
"""
METHODS = ("get", "post", "put", "patch", "delete", "head")


def documents() -> dict[str, str]:
    """The JSON schemas and the reference pages of the job and cluster documents."""
    from corral.spec.schema import generated

    return generated()


def hosts_document() -> dict[str, str]:
    """The JSON schema and the reference page of `hosts.yaml`."""
    from corral.deploy.hosts.document import HostsDocument
    from corral.spec.schema import reference, schema_of

    schema = schema_of(HostsDocument, "Corral hosts")
    page = reference("The hosts document", schema)
    return {"schema/hosts.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n", "reference/hosts.md": page}


def settings_page() -> dict[str, str]:
    """Every setting of the server, of Corral's own engines and tenants: its variable, type, default and meaning."""
    from corral.engines.kubernetes.kind import KubernetesKind
    from corral.engines.local.kind import LocalKind
    from corral.engines.yarn.kind import YarnKind
    from corral.kernel.plug_ins import own_plug_ins
    from corral.service.tenant_settings import GROUP
    from corral.settings import Settings

    rows = [f"# Settings\n\n{NOTE}\n\n{inspect.getdoc(Settings)}\n", *_settings(Settings.model_fields)]
    for kind in (LocalKind, KubernetesKind, YarnKind):
        rows += [f"\n## The engine {kind.name}\n\n{inspect.getdoc(kind.settings)}\n"]
        rows += _settings(kind.settings.model_fields)
    for name, point in own_plug_ins(GROUP).items():
        declared = point.load()
        rows += [f"\n## The tenant {name}\n\n{inspect.getdoc(declared)}\n", *_settings(declared.model_fields)]
    return {"reference/settings.md": "\n".join(rows) + "\n"}


def _settings(fields: Mapping[str, FieldInfo]) -> Iterator[str]:
    yield from ("| variable | type | default | meaning |", "|---|---|---|---|")
    for name, field in fields.items():
        kind = re.sub(r"\b\w+\.", "", inspect.formatannotation(field.annotation)).replace("|", "or")
        default = "computed" if field.default_factory else f"`{field.default!r}`"
        yield f"| `CORRAL_{name.upper()}` | {kind} | {_cell(default)} | {_cell(field.description or '')} |"


def help_text(text: str) -> str:
    """A command's help as Markdown; paragraphs whose lines click keeps as they are (`\\b`) become code."""
    pieces = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        pieces.append(textwrap.indent(textwrap.dedent(rest), "    ") if head.strip() == "\b" else paragraph)
    return "\n\n".join(pieces)


def commands_page() -> dict[str, str]:
    """Every command with its arguments and options."""
    import click

    from corral.cli.command_table import corral

    def sections(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
        context = click.Context(command, info_name=path.rsplit(" ", 1)[-1], parent=parent)
        if not isinstance(command, click.Group) or parent is None or command.invoke_without_command:
            yield f"## {path}\n"
            yield f"    {command.get_usage(context).removeprefix('Usage: ')}\n"
            yield help_text(command.help or "") + "\n"
            options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
            if options:
                yield "| option | meaning |\n|---|---|"
                for option in options:
                    names = ", ".join([*option.opts, *option.secondary_opts])
                    value = "" if option.is_flag or option.count else f" {option.make_metavar(context)}"
                    yield f"| `{_cell(names + value)}` | {_cell(option.help or '')} |"
                yield ""
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                if inner is not None and not inner.hidden:
                    yield from sections(inner, f"{path} {name}", context)

    return {
        "reference/cli.md": "\n".join([f"# Commands\n\n{NOTE}\n", *sections(corral, "corral", None)]).rstrip() + "\n"
    }


@functools.cache
def openapi() -> dict[str, Any]:
    """The document of `/openapi.json`; no server is needed for it."""
    from corral.api.application import create_app
    from corral.api.tenants import routes_of
    from corral.kernel.clock import VirtualClock
    from corral.service.tenant_settings import no_options

    nowhere = Path("/nonexistent")
    tenants = routes_of({}, no_options)
    app = create_app(
        cast(Any, None), tenants=tenants, clock=VirtualClock(), portal_folder=nowhere, connect=cast(Any, None)
    )
    return app.openapi()


def openapi_file() -> dict[str, str]:
    """The OpenAPI document, from which the types of the portal and of the SDK are generated."""
    return {"schema/openapi.json": json.dumps(openapi(), indent=1, ensure_ascii=False) + "\n"}


def sdk_types() -> dict[str, str]:
    """The types of the SDK's answers."""
    return {"../corral/client/schema.py": _of_docs("sdk_types").module(openapi())}


def endpoints_page() -> dict[str, str]:
    """Every endpoint with its parameters, bodies and answers."""
    document = openapi()
    lines = [f"# REST API\n\n{NOTE} The server serves the same as OpenAPI under `/openapi.json`.\n", REFUSALS]
    for path, methods in sorted(document["paths"].items()):
        for method in METHODS:
            if method not in methods:
                continue
            said = methods[method]
            lines.append(f"## {method.upper()} {path}\n")
            lines.append((said.get("description") or said.get("summary") or "").strip() + "\n")
            parameters = said.get("parameters", [])
            if parameters:
                lines.append("| parameter | in | meaning |\n|---|---|---|")
                for each in parameters:
                    needed = " (required)" if each.get("required") and each["in"] != "path" else ""
                    lines.append(f"| `{each['name']}` | {each['in']}{needed} | {_cell(each.get('description', ''))} |")
                lines.append("")
            body = said.get("requestBody", {}).get("content", {})
            if body:
                lines.append(f"Body: {', '.join(f'`{kind}`' for kind in body)}.\n")
            answers = [
                f"{code} {answer.get('description', '')}".strip()
                for code, answer in sorted(said["responses"].items())
                if code < "400"
            ]
            lines.append(f"Answers: {'; '.join(answers)}.\n")
    return {"reference/api.md": "\n".join(lines).rstrip() + "\n"}


def messages_page() -> dict[str, str]:
    """Every message that users read, by package and code."""
    return {"reference/messages.md": _of_docs("messages").page(NOTE)}


def metrics_page() -> dict[str, str]:
    """Every metric for Prometheus, with its type, labels and meaning."""
    from corral.model.metrics.families import FAMILIES

    lines = [
        f"# Metrics\n\n{NOTE} [monitoring.md](../monitoring.md) says how they are read.\n",
        "| metric | type | labels | without a token | meaning |",
        "|---|---|---|---|---|",
    ]
    for family in FAMILIES.values():
        told = "no" if not family.in_totals else "totals" if family.names_somebody else "yes"
        buckets = f" Buckets: {', '.join(f'{bound:g}' for bound in family.buckets)}." if family.buckets else ""
        labels = ", ".join(f"`{label}`" for label in family.labels)
        lines.append(f"| `{family.name}` | {family.kind} | {labels} | {told} | {_cell(family.help + buckets)} |")
    return {"reference/metrics.md": "\n".join(lines) + "\n"}


def architecture() -> dict[str, str]:
    """`architecture.md` with its generated blocks rewritten."""
    from corral.launcher import JOB_MACHINE, TASK_MACHINE, diagram

    blocks = {
        "job-machine": f"```mermaid\n{diagram(JOB_MACHINE)}```\n",
        "task-machine": f"```mermaid\n{diagram(TASK_MACHINE)}```\n",
        "packages": packages(),
        "folders": folders(),
    }
    text = (DOCS / "architecture.md").read_text()
    return {"architecture.md": BLOCK.sub(lambda found: found[1] + blocks[found["name"]] + found[3], text)}


def scheduling() -> dict[str, str]:
    """`scheduling.md` with its tables of presets and of sentences rewritten."""
    blocks = {"policies": presets(), "sentences": sentences()}
    text = (DOCS / "scheduling.md").read_text()
    return {"scheduling.md": BLOCK.sub(lambda found: found[1] + blocks[found["name"]] + found[3], text)}


def sentences() -> str:
    """The reasons that jobs are given in the examples of `scheduling.md`."""
    lines = ["| example | job | is told |", "|---|---|---|"]
    lines += [f"| {example} | `{job}` | {_cell(told)} |" for example, job, told in _of_docs("scenes").sentences()]
    return "\n".join(lines) + "\n"


def presets() -> str:
    """The rules of each built-in policy."""
    from corral.scheduler.policy.policy import BUILT_IN

    said = {True: "yes", False: "no"}
    lines = [
        "| preset | who is next | backfill | others yield | consolidation | elastic jobs move |",
        "|---|---|---|---|---|---|",
    ]
    for name, policy in BUILT_IN.items():
        order = _sentence(inspect.getdoc(type(policy.order)) or "").partition("\n")[0].rstrip(".")
        order = f"{order[:1].lower()}{order[1:]}"
        first = f"the queue that is most wronged, in it {order}" if policy.fair else order
        moves = f"after {policy.move_seconds:g} s" if policy.move_seconds else "no"
        decides = " (HiveD's algorithm says where, and who yields)" if policy.planner == "hived" else ""
        lines.append(
            f"| `{name}` | {first}{decides} | {said[policy.backfill]} | {said[policy.preemption]} "
            f"| {said[policy.consolidation]} | {moves} |"
        )
    return "\n".join(lines) + "\n"


def pictures() -> dict[str, str]:
    """The pictures of `scheduling.md`, drawn from the scheduler's state."""
    drawn: dict[str, str] = _of_docs("scenes").pictures()
    return drawn


def _of_docs(name: str) -> Any:
    """A module beside this one; this file is run as a script, so its folder's parent may not be on the path."""
    if str(DOCS.parent) not in sys.path:
        sys.path.insert(0, str(DOCS.parent))
    return importlib.import_module(f"docs.{name}")


def packages() -> str:
    """Every top-level package with the first line of its docstring, highest layer first."""
    floors = re.search(r"^layers =\n((?:    .+\n)+)", (DOCS.parent / ".importlinter").read_text(), re.MULTILINE)
    assert floors, ".importlinter has no layers"
    lines = ["| floor | package | what it is for |", "|---|---|---|"]
    for number, floor in enumerate(floors[1].splitlines(), 1):
        for optional, name in re.findall(r"(\(?)(\w+)", floor):
            base = DOCS.parent / "corral" / name
            source = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
            if optional and not source.is_file():
                continue
            found = re.match(r'"""(.+?)(?:"""|\n)', source.read_text())
            assert found, f"{source} does not open with a sentence"
            lines.append(f"| {number} | `{name}` | {_cell(_sentence(found[1]))} |")
    return "\n".join(lines) + "\n"


def folders() -> str:
    """Every folder inside a package with the first line of its docstring, by path."""
    package = DOCS.parent / "corral"
    lines = ["| folder | what it is for |", "|---|---|"]
    for source in sorted(package.glob("*/**/__init__.py")):
        name = source.parent.relative_to(package).as_posix()
        if "/" not in name:
            continue
        found = re.match(r'"""(.+?)(?:"""|\n)', source.read_text())
        assert found, f"{source} does not open with a sentence"
        lines.append(f"| `{name}/` | {_cell(_sentence(found[1]))} |")
    return "\n".join(lines) + "\n"


GENERATORS: tuple[Callable[[], dict[str, str]], ...] = (
    documents,
    hosts_document,
    settings_page,
    commands_page,
    openapi_file,
    sdk_types,
    endpoints_page,
    messages_page,
    metrics_page,
    architecture,
    scheduling,
    pictures,
)


def _sentence(opening: str) -> str:
    """The first line of a module's docstring as a sentence of its own."""
    return opening[:1].upper() + opening[1:]


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def main(arguments: list[str]) -> int:
    """Write the files that changed, or with `--check` only name them; returns the exit code."""
    stale = []
    for generator in GENERATORS:
        for path, text in generator().items():
            target = DOCS / path
            if target.is_file() and target.read_text() == text:
                continue
            stale.append(path)
            if "--check" not in arguments:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
    for path in stale:
        print(
            f"{(DOCS / path).resolve().relative_to(DOCS.parent)} "
            + ("is out of date: run `make docs`" if "--check" in arguments else "was written")
        )
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
