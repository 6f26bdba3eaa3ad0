"""A file of rules in the shape of SuperBench's: which metrics are judged, by which criterion.

```yaml
version: v0.12
superbench:
  rules:
    memory:
      function: variance               # x is the change against the baseline, as a part of it
      criteria: x < -0.05
      categories: Memory
      metrics: ["cpu-stream/.*_bw:\\d+"]
    failed:
      function: failure                # x is the value; a metric that is missing breaks it too
      criteria: x != 0
      categories: Failed
      metrics: [".*/return_code"]
    both:
      function: composite              # names of other rules mean how many metrics break them
      criteria: memory + failed >= 2
      categories: Suspect
```
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, NamedTuple

from corral.benchmarks.rules.criteria import Criterion, read_criterion
from corral.benchmarks.suite.document import read_document
from corral.kernel.errors import InvalidInput

Function = Literal["variance", "value", "failure", "composite"]
_FUNCTIONS: Final[dict[str, Function]] = {
    "variance": "variance", "value": "value", "failure": "failure", "failure_check": "failure",
    "composite": "composite", "multi_rules": "composite",
}  # fmt: skip
_MOST_RULES: Final = 200
_MOST_METRICS: Final = 200
_PATTERN: Final = re.compile(r"(?:[\w/:.\- ]|\\[dw.]|\.\*|\.\+|\\d\+|\[\^?[\w\-]{1,20}\]|[+*?()|])+")
"""The part of regular expressions that a metric's pattern may use."""


class Rule(NamedTuple):
    """One rule."""

    name: str
    function: Function
    criterion: Criterion
    text: str
    """The criterion as it is written."""
    category: str
    metrics: tuple[re.Pattern[str], ...]
    stored: bool
    """Only other rules count it; by itself it is no defect."""


def read_rules(text: bytes) -> tuple[Rule, ...]:
    """Read a rules file. Raises InvalidInput with the path of the fault."""
    given = read_document(text, "rules").get("superbench")
    rules = given.get("rules") if isinstance(given, dict) else None
    if not isinstance(rules, dict) or not 0 < len(rules) <= _MOST_RULES:
        raise _fault("superbench.rules", f"must be a mapping of 1 to {_MOST_RULES} rules")
    return tuple(_rule(str(name), rule) for name, rule in rules.items())


def _rule(name: str, given: Any) -> Rule:
    path = f"superbench.rules.{name[:60]}"
    if not isinstance(given, dict):
        raise _fault(path, "must be a mapping")
    for key in given:
        if key not in {"function", "criteria", "categories", "metrics", "store"}:
            raise _fault(f"{path}.{str(key)[:60]}", "is not known here")
    function = _FUNCTIONS.get(str(given.get("function")))
    if function is None:
        raise _fault(f"{path}.function", "must be variance, value, failure or composite")
    criteria, stored = given.get("criteria"), given.get("store", False)
    if not isinstance(criteria, str):
        raise _fault(f"{path}.criteria", "must be a text such as x < -0.05")
    if not isinstance(stored, bool):
        raise _fault(f"{path}.store", "must be true or false")
    category = str(given.get("categories") or name)[:100]
    metrics = given.get("metrics") or []
    if not isinstance(metrics, list) or len(metrics) > _MOST_METRICS:
        raise _fault(f"{path}.metrics", f"must be a list of at most {_MOST_METRICS} patterns")
    if bool(metrics) == (function == "composite"):
        raise _fault(f"{path}.metrics", "must be given" if not metrics else "must be left out of a composite rule")
    patterns = tuple(_pattern(each, path) for each in metrics)
    return Rule(name, function, read_criterion(criteria), criteria, category, patterns, stored)


def _pattern(text: Any, path: str) -> re.Pattern[str]:
    """Compile a metric's pattern. Only short ones with few repetitions are taken, so that none takes long to match."""
    fault = _fault(f"{path}.metrics", f'has the pattern "{str(text)[:60]}", which is not understood')
    if not isinstance(text, str) or len(text) > 200 or _PATTERN.fullmatch(text) is None:
        raise fault
    if len(re.findall(r"[+*]", text)) > 4 or re.search(r"[+*)][+*?]|\)[+*]", text):
        raise fault
    try:
        return re.compile(text)
    except (re.error, RecursionError):
        raise fault from None


def _fault(path: str, what: str) -> InvalidInput:
    return InvalidInput("bad-rules", f"{path} {what}.")
