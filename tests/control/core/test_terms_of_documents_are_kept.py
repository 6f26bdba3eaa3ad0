"""What the rules read of a document is kept by its text, and equals what is read of it anew."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from corral.control.core.world import DocumentTerms, read_terms
from corral.spec.job import UnifiedJob
from corral.spec.job_reader import load_job

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
ROLES = st.fixed_dictionaries(
    {
        "replicas": st.integers(1, 3),
        "resources": st.fixed_dictionaries({"cpu": st.integers(1, 2), "devices": st.integers(0, 2)}),
        "command": st.just(["true"]),
    }
)
FILES = st.fixed_dictionaries(
    {
        "name": NAMES,
        "framework": st.sampled_from(["shell", "pytorch"]),
        "priority": st.integers(0, 3),
        "roles": st.dictionaries(NAMES, ROLES, min_size=1, max_size=2),
    }
)


@given(st.lists(FILES, min_size=1, max_size=4))
def test_kept_terms_equal_those_read_anew_whatever_the_name(files: list[dict[str, object]]) -> None:
    for file in files:
        text = load_job(json.dumps(file)).to_json()
        assert read_terms(text) == DocumentTerms.of(UnifiedJob.model_validate_json(text))
