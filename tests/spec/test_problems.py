"""Every problem of a document is reported with its place and a remedy."""

from __future__ import annotations

import json

import pytest

from corral.spec.errors import SpecError
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import BUILT_IN_JOB_TYPES, load_job
from corral.spec.yaml_source import MAX_DEPTH

LINE_OF_ROLE = "name: a\nroles:\n  w:\n    command: [x]\n    {}\n"

ROLE_PROBLEMS = {
    "a misspelt field": ("comand: x", '5:5: roles.w.comand: unknown field; did you mean "command"?'),
    "a field of another language": (
        "resource: {cpu: 1}",
        '5:5: roles.w.resource: unknown field; did you mean "resources"?',
    ),
    "a nested field": (
        "resources: {memry: 2Gi}",
        '5:17: roles.w.resources.memry: unknown field; did you mean "memory"?',
    ),
    "a field nothing is like": (
        "completion: {zzz: 1}",
        "5:18: roles.w.completion.zzz: unknown field; expected one of minFailed, minSucceeded",
    ),
    "a word for a number": (
        "replicas: two",
        '5:15: roles.w.replicas: expected a whole number or a mapping (key: value), got "two"',
    ),
    "a fraction for a whole number": (
        "processesPerReplica: 1.50",
        "5:26: roles.w.processesPerReplica: expected a whole number, got 1.50",
    ),
    "no replicas": ("replicas: 0", "5:15: roles.w.replicas: expected at least 1, got 0"),
    "too many replicas": ("replicas: 10001", "5:15: roles.w.replicas: expected at most 10000, got 10001"),
    "bounds the wrong way round": (
        "replicas: {min: 3, max: 2}",
        "5:15: roles.w.replicas: 2 is not between minReplicas 3 and maxReplicas 2",
    ),
    "processors that are not an amount": (
        "resources: {cpu: many}",
        '5:22: roles.w.resources.cpu: processors are written as 2, 0.5 or 500m, got "many"',
    ),
    "a wrong unit": (
        "resources: {memory: 2 gigs}",
        '5:25: roles.w.resources.memory: memory is written as 512Mi, 2Gi or a number of bytes, got "2 gigs"',
    ),
    "a forgotten unit": (
        "resources: {memory: 512}",
        '5:25: roles.w.resources.memory: "512" is 512 bytes; write a unit, such as 512Mi or 512Gi',
    ),
    "negative devices": (
        "resources: {devices: -1}",
        "5:26: roles.w.resources.devices: expected at least 0, got -1",
    ),
    "named devices that do not add up": (
        "resources: {devices: {count: 3, ids: [0, 1]}}",
        "5:34: roles.w.resources.devices.count: 3 does not agree with the 2 devices named in ids",
    ),
    "a device named twice": (
        "resources: {devices: {count: 2, ids: [0, 0]}}",
        '5:46: roles.w.resources.devices.ids[1]: "0" is already named',
    ),
    "a yes/no value for text": (
        "image: true",
        "5:12: roles.w.image: expected text, got the yes/no value true; put quotes around it",
    ),
    "an unfit variable": (
        "env: {1A: x}",
        "5:11: roles.w.env.1A: expected letters, digits and '_', not beginning with a digit, got \"1A\"",
    ),
    "a variable without a value": (
        "env: {A: }",
        '5:14: roles.w.env.A: expected text, got nothing; write "" if it should be empty',
    ),
    "a NUL character": ('env: {A: "\\0"}', "5:14: roles.w.env.A: a NUL character cannot be part of it"),
    "a list in a command": (
        "ports: [[http]]",
        "5:13: roles.w.ports[0]: expected text or a mapping (key: value), got a list",
    ),
    "a port that there is not": (
        "ports: [{name: web, start: 65536}]",
        "5:32: roles.w.ports[0].start: expected at most 65535, got 65536",
    ),
    "the same port twice": ("ports: [http, http]", '5:19: roles.w.ports[1]: the port "http" is already there'),
    "a secret that goes nowhere": (
        "secrets: [{name: hub}]",
        "5:15: roles.w.secrets[0]: expected either env (a variable's name) or file (a file's name)",
    ),
    "a secret that leaves its folder": (
        "secrets: [{name: hub, file: ../x}]",
        '5:33: roles.w.secrets[0].file: "../x" leaves its folder; write the path without ".."',
    ),
    "a variable and a secret of one name": (
        "env: {A: 1}\n    secrets: {A: hub}",
        '6:14: roles.w.secrets: "A" is already set in env',
    ),
    "two words for one thing": (
        "retry: 1\n    retryPolicy: 2",
        "5:12: roles.w.retry: retryPolicy says the same; give one of the two",
    ),
    "half a group": (
        "topology: {group: {size: 4}}",
        "5:23: roles.w.topology.group.required: missing; a group has both a size and a required level",
    ),
    "a level no cluster can have": (
        "topology: {required: Rack 1}",
        "5:26: roles.w.topology.required: expected a level's name, such as pcie-switch, numa, node or rack, or nothing, "
        'got "Rack 1"',
    ),
}

JOB_PROBLEMS = {
    "a misspelt framework field": ("framwork: x", '2:1: framwork: unknown field; did you mean "framework"?'),
    "an unknown priority": (
        "priority: prd",
        '2:11: priority: expected a priority class or an integer, got "prd"; did you mean "prod"?',
    ),
    "a duration in words": (
        "maxDuration: 2 hours",
        '2:14: maxDuration: a duration is written as 90s, 30m, 2h, 1h30m or 2d, got "2 hours"',
    ),
    "a signal that does not exist": (
        "checkpoint: {signal: USR3}",
        '2:22: checkpoint.signal: "USR3" is not a signal a job can be sent; did you mean "SIGUSR2"?',
    ),
    "a pattern that is none": (
        "report: {pattern: 'step ('}",
        '2:19: report.pattern: "step (" is not a regular expression: missing ), unterminated subpattern at position 5',
    ),
    "a folder of event files outside": (
        "report: {tensorboard: [../runs]}",
        '2:24: report.tensorboard[0]: "../runs" leaves its folder; write the path without ".."',
    ),
    "event files of no bucket": (
        "report: {tensorboard: ['s3:///runs']}",
        '2:24: report.tensorboard[0]: "s3:///runs" has no bucket; write it as in s3://bucket/runs',
    ),
    "event files of no host": (
        "report: {tensorboard: [/runs, 'hdfs://:8020/runs']}",
        '2:31: report.tensorboard[1]: "hdfs://:8020/runs" has no host; write it as in hdfs://host:8020/runs',
    ),
    "event files with a password": (
        "report: {tensorboard: ['hdfs://ann:pw@host/runs']}",
        "2:24: report.tensorboard[0]: a URI may not hold a password; put it in a secret",
    ),
    "event files of an unknown scheme": (
        "report: {tensorboard: ['gs://bucket']}",
        '2:24: report.tensorboard[0]: "gs://bucket" is neither a path nor a URI that begins with s3://, hdfs://, '
        "webhdfs://, swebhdfs://",
    ),
    "a pattern that finds nothing": (
        "report: {pattern: 'step [0-9]+'}",
        '2:19: report.pattern: "step [0-9]+" has no named group, such as (?P<step>[0-9]+)',
    ),
    "a pattern for an unknown value": (
        "report: {pattern: '(?P<stepp>[0-9]+)'}",
        '2:19: report.pattern: the group "stepp" names no value that is reported; did you mean "step"?',
    ),
    "a condition that does not exist": (
        "after: [{job: b, condition: suceeded}]",
        '2:29: after[0].condition: expected one of succeeded, ended, got "suceeded"; did you mean "succeeded"?',
    ),
    "waiting for itself": ("after: a", "2:8: after: a job cannot wait for itself"),
    "data that is not at a URI": (
        "inputs: [{uri: /data, path: data}]",
        '2:16: inputs[0].uri: expected a URI, such as file:///data/digits, got "/data"',
    ),
    "a password in a URI": (
        "inputs: [{uri: 's3://me:secret@host/x', path: data}]",
        "2:16: inputs[0].uri: a URI may not hold a password; put it in a secret",
    ),
    "an output without a place": ("outputs: [{path: model}]", "2:11: outputs[0].uri: missing"),
    "an alias given twice": (
        "queue: a\nvirtualCluster: b",
        "3:17: virtualCluster: queue says the same; give one of the two",
    ),
    "parallelism of no array": (
        "array: {maxParallel: 2}",
        "2:8: array.size: missing; maxParallel bounds an array's jobs, and there is no array",
    ),
    "an array of no job": (
        "array: 0",
        "2:8: array: expected at least 1 job; without `array` it is one job",
    ),
    "an array of no job, written out": (
        "array: {size: 0, maxParallel: 2}",
        "2:8: array: expected at least 1 job; without `array` it is one job",
    ),
    "a counted role that is not there": (
        "countedRole: workr",
        '2:14: countedRole: no role is called "workr"',
    ),
    "a key given twice": ("tags: [x]\ntags: [y]", "3:1: tags: repeated; it was already given in line 2"),
    "a reference to nothing": (
        "parameters: {epochs: 5}\nimage: <% $parameters.epoch %>",
        '3:8: image: there is no parameter "epoch"; did you mean "epochs"?',
    ),
    "a reference of another kind": (
        "image: <% $secret.x %>",
        '2:8: image: cannot fill in "<% $secret.x %>"; only <% $parameters.NAME %> stands for something',
    ),
    "a dangling alias": ("tags: *all", "2:7: the alias *all is not defined above"),
    "a tag": ("tags: !!set {x}", "2:7: the tag tag:yaml.org,2002:set means nothing here; remove it"),
    "a number for a key": ("labels: {1: x}", "2:10: labels: the key 1 must be text; put quotes around it"),
}


def _refusal(text: str | bytes) -> str:
    with pytest.raises(SpecError) as caught:
        load_job(text)
    assert caught.value.code == "invalid-document"
    return str(caught.value)


@pytest.mark.parametrize(("line", "expected"), ROLE_PROBLEMS.values(), ids=ROLE_PROBLEMS.keys())
def test_a_problem_in_a_role_is_told(line: str, expected: str) -> None:
    assert _refusal(LINE_OF_ROLE.format(line)) == (f"job.yaml:{expected}")


@pytest.mark.parametrize(("lines", "expected"), JOB_PROBLEMS.values(), ids=JOB_PROBLEMS.keys())
def test_a_problem_of_a_job_is_told(lines: str, expected: str) -> None:
    assert _refusal(f"name: a\n{lines}\nroles: {{w: {{command: [x]}}}}\n").startswith(f"job.yaml:{expected}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "job.yaml: expected a job (a mapping of fields), got nothing"),
        ("- a", "job.yaml:1:1: expected a job (a mapping of fields), got a list"),
        ("a: [", "job.yaml:2:1: not well-formed YAML: did not find expected node content while parsing a flow node"),
        (b"\xff\xfe", "job.yaml: not UTF-8 text; save it as UTF-8"),
        (
            "a: 1\n---\nb: 2",
            "job.yaml:3:1: the file holds 2 documents, 2 of them jobs (job (line 1), job (line 3)), and one request "
            "takes one job, so nothing was taken; `corral submit FILE` submits each, or send them one by one",
        ),
        ("kind: UnifiedJob", "job.yaml:1:1: apiVersion: missing; write corral.dev/v1alpha1"),
        (
            "apiVersion: corral.dev/v1alpha1\nkind: UnifedJob",
            'job.yaml:2:7: kind: expected UnifiedJob, got "UnifedJob"',
        ),
        ("kind: Cluster", "job.yaml:1:7: kind: this is a cluster document, and a job was expected"),
        ("roles: {w: {command: x}}", "job.yaml:1:1: name: missing"),
        ("name: a\nroles: {}", "job.yaml:2:8: roles: expected something, got nothing"),
        ("name: a\nroles: {w: {}}", "job.yaml:2:12: roles.w.command: missing; say what the role runs"),
        (
            "name: My Job\nroles: {w: {command: x}}",
            "job.yaml:1:7: name: expected lower-case letters, digits and '-', beginning and ending with a letter or "
            'digit, got "My Job"',
        ),
        ("name: " + "a" * 64 + "\nroles: {w: {command: x}}", "job.yaml:1:7: name: expected at most 63 characters"),
        ("a: " + "x" * 2**20, "job.yaml: longer than 1048576 bytes; put large things in code or inputs"),
        ("[" * 100, f"job.yaml:1:65: nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_a_document_that_is_no_job_is_refused(text: str | bytes, expected: str) -> None:
    assert _refusal(text) == expected


def test_all_problems_are_told_at_once_in_document_order() -> None:
    text = "name: A\nprority: 1\nroles:\n  w: {replicas: 0, comand: x}\n  V: {}\n"
    lines = _refusal(text).splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "name",
        "prority",
        "roles.w.replicas",
        "roles.w.comand",
        "roles.V",
    ]


def test_a_long_list_of_problems_ends() -> None:
    text = "name: a\nroles: {w: {command: [x]}}\n" + "".join(f"zz{n}: 1\n" for n in range(50))
    lines = _refusal(text).splitlines()
    assert (len(lines), lines[-1]) == (21, "and 30 more")
    endless = "".join(f"zz{n}: 1\n" for n in range(20_000))
    assert _refusal(f"name: a\nroles: {{w: {{command: [x]}}}}\n{endless}").splitlines()[-1] == "and at least 80 more"


def test_the_canonical_form_blames_its_own_paths() -> None:
    document = load_job("name: a\nroles: {w: {command: [x]}}").to_document()
    document["spec"]["roles"].append({"name": "w", "command": ["y"], "replica": 2})
    with pytest.raises(SpecError) as caught:
        UnifiedJob.from_document(document)
    assert str(caught.value) == 'document: spec.roles[1].replica: unknown field; did you mean "replicas"?'
    del document["spec"]["roles"][1]["replica"]
    text = json.dumps(document)
    column = text.rindex('"w", "command"') + 1
    assert _refusal(text).splitlines()[0] == (
        f'job.yaml:1:{column}: spec.roles[1].name: the role "w" is already there; roles have unique names'
    )


def test_a_framework_nobody_knows_is_refused_where_the_known_ones_are_given() -> None:
    text = "name: a\nframework: pytroch\nroles: {w: {command: [x]}}"
    assert load_job(text).spec.job_type == "pytroch"
    with pytest.raises(SpecError) as caught:
        load_job(text, job_types=BUILT_IN_JOB_TYPES)
    assert str(caught.value) == 'job.yaml:2:12: framework: no framework is called "pytroch"; did you mean "pytorch"?'
    assert caught.value.problems[0].to_document() == {
        "path": "framework",
        "message": 'no framework is called "pytroch"; did you mean "pytorch"?',
        "suggestion": "pytorch",
        "line": 2,
        "column": 12,
        "file": "job.yaml",
    }


def test_more_than_ten_thousand_tasks_are_refused() -> None:
    text = "name: a\nroles: {v: {command: x, replicas: 6000}, w: {command: x, replicas: 6000}}"
    assert _refusal(text) == "job.yaml:2:8: roles: 12000 tasks in all; a job has at most 10000"
