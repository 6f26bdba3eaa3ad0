"""The code folder is found in either form of a job file, and no other field is taken for one."""

from __future__ import annotations

import pytest

from corral.spec.local_code import local_code


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("code: .", "."),
        ("code: {path: src, target: app}", "src"),
        ("code: {uri: ../src}", "../src"),
        ("kind: UnifiedJob\nspec: {code: {uri: .}}", "."),
        ("code: ~/train", "~/train"),
        ("code: file:///data/code", ""),
        ("code: blob:123", ""),
        ("code: {target: app}", ""),
        ("code: <% $parameters.where %>", ""),
        ("code: 3", ""),
        ("name: a", ""),
        ("spec: [1]", ""),
        ("[", ""),
        ("- code", ""),
    ],
)
def test_the_code_folder_is_what_the_file_names(text: str, folder: str) -> None:
    assert local_code(text) == folder
