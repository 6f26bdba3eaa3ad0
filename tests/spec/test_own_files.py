"""The text of a job file is stored as written, without its secrets."""

from __future__ import annotations

import json
import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from corral.compat.openpai.language.secret_masking import without_secrets
from corral.spec.errors import SpecError
from corral.spec.job_reader import read_job
from corral.spec.own_file import MASK, OwnFile
from corral.spec.yaml_source import parse_source
from tests.spec.openpai_files import MINIMAL, job_file

SHORT = "# my job\nname: digits   # the best\nroles:\n  worker: {command: 'echo hi'}  # that is all\n"
PASSWORD = "correct-horse-battery"


def kept(text: str | bytes) -> OwnFile:
    file = read_job(text).file
    assert file is not None
    return file


def with_secrets(written: str) -> str:
    return f"# begin\n{MINIMAL}secrets:\n{written}\n# end\n"


def registry(password: str, more: str = "") -> str:
    auth = f"auth: {{username: me, password: {password}, registryuri: reg.example}}"
    return MINIMAL.replace('"ubuntu:22.04"}', f'"reg.example/x", {auth}}}') + more


@pytest.mark.parametrize("text", [SHORT, SHORT.replace("\n", "\r\n"), "\ufeff" + SHORT, MINIMAL, "\n\n" + SHORT])
def test_a_file_without_secrets_is_kept_byte_for_byte(text: str) -> None:
    assert kept(text) == kept(text.encode()) == OwnFile(text)


def test_a_job_of_openpais_first_protocol_keeps_its_comments() -> None:
    role = {"name": "w", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "command": "true"}
    text = json.dumps({"jobName": "j", "image": "x", "taskRoles": [role]}).replace("{", "{ // an old one\n", 1)
    assert kept(text).text == text


def test_of_several_documents_only_the_jobs_own_is_kept() -> None:
    secret = f"---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{p: {PASSWORD}}}\n"
    file = kept(f"{secret}---\n{SHORT}")
    assert file.text == f"---\n{SHORT}"


def test_of_several_documents_beside_a_job_with_comments_only_its_own_is_kept() -> None:
    role = {"name": "w", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "command": "true"}
    job = json.dumps({"jobName": "j", "image": "x", "taskRoles": [role]}).replace("{", "{ // an old one\n", 1)
    secret = f"\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{p: {PASSWORD}}}\n"
    assert PASSWORD not in kept(job + secret).text


def test_data_has_no_file() -> None:
    assert read_job(yaml.safe_load(SHORT)).file is None


@pytest.mark.parametrize(
    "written",
    [
        f"  token: {PASSWORD}  # a comment",
        f'  token: "{PASSWORD}"',
        f"  token: '{PASSWORD}'",
        f"  token: |  # of a block\n    {PASSWORD}\n",
        f"  token: >-\n    {PASSWORD}",
        f"  token: |\n    first\n    {PASSWORD}\n\n\n  other: x",
        f"  token: one\n    {PASSWORD}\n    two",
        f"  deep: {{list: [a, {PASSWORD}]}}",
        f"  token: &t {PASSWORD}\n  again: *t",
        '  token: "correct\\x2dhorse-battery"',
    ],
)
def test_a_secret_is_replaced_where_it_stands_and_nothing_else_is(written: str) -> None:
    text = with_secrets(written)
    file = kept(text)
    assert PASSWORD not in file.text and "horse" not in file.text
    assert any(PASSWORD in value for value in file.secrets.values())
    head = text[: text.index("secrets:")]
    assert file.text.startswith(head) and file.text.endswith("# end\n")
    assert ("# a comment" in file.text) == ("# a comment" in written)
    before, after = yaml.safe_load(text), yaml.safe_load(file.text)
    assert before.pop("secrets").keys() == after.pop("secrets").keys()
    assert before == after


def test_a_registrys_password_is_replaced_and_belongs_to_its_registry() -> None:
    file = kept(registry(PASSWORD))
    assert PASSWORD not in file.text and f'password: "{MASK}"' in file.text
    assert file.secrets == {'["prerequisites","dockerimage","d","reg.example"]': PASSWORD}


def test_a_password_that_names_a_secret_stays() -> None:
    text = registry('"<% $secrets.p %>"', f"secrets: {{p: {PASSWORD}}}\n")
    assert '"<% $secrets.p %>"' in kept(text).text


def test_a_comment_that_repeats_a_secret_loses_it() -> None:
    file = kept(with_secrets(f"  token: {PASSWORD}  # not {PASSWORD} any more"))
    assert f"# not {MASK} any more" in file.text and PASSWORD not in file.text


def test_one_line_of_a_long_secret_in_a_comment_is_enough_to_be_replaced() -> None:
    assert PASSWORD not in kept(with_secrets(f"  key: |\n    BEGIN\n    {PASSWORD}\n  # {PASSWORD}")).text


def test_a_comment_behind_the_head_of_another_text_loses_a_secret_too() -> None:
    text = with_secrets(f"  token: {PASSWORD}") + f"description: |  # {PASSWORD}\n  fine\n"
    assert PASSWORD not in kept(text).text


def test_a_short_secret_leaves_words_alone_that_happen_to_hold_it() -> None:
    file = kept(with_secrets("  pin: on  # one of the ones, on"))
    assert f"# one of the ones, {MASK}" in file.text


@pytest.mark.parametrize(
    "text",
    [
        with_secrets(f"  token: {PASSWORD}") + f"description: use {PASSWORD}\n",
        with_secrets(f"  token: {PASSWORD}") + f"contributor: &{PASSWORD} me\n",
        f"{MINIMAL}description: &d {PASSWORD}\nsecrets: {{a: *d}}\n",
        f"{MINIMAL}parameters: &p {{a: {PASSWORD}}}\nsecrets: *p\n",
        f"{MINIMAL}secrets: &p {{a: {PASSWORD}}}\nparameters: *p\n",
        f"{MINIMAL}parameters: &p {{a: {PASSWORD}}}\nsecrets: {{<<: *p}}\n",
        f"{MINIMAL}secrets:\n  {PASSWORD}: {PASSWORD}\n",
    ],
)
def test_a_text_in_which_a_secret_would_stay_is_not_kept(text: str) -> None:
    read = read_job(text)
    assert read.file is None and PASSWORD in read.secrets.values()


@pytest.mark.parametrize(
    ("written", "repeated"),
    [
        ("0x75BCD15", "0x75BCD15 and 123456789"),
        ('"correct\\x2dhorse-battery"', "correct\\x2dhorse-battery"),
        (f">\n    {PASSWORD}\n    of the second line", "of the second line"),
        (f">\n    {PASSWORD}\n    of the second line", PASSWORD),
        (f'"{PASSWORD}\\\n    of the second line"', PASSWORD),
        (f"{PASSWORD}\n    of the second line", f"{PASSWORD}   of\tthe second line"),
        (f"{PASSWORD} of the second line", f"{PASSWORD}  of the second line"),
    ],
)
def test_a_comment_that_repeats_a_secret_as_the_file_spells_it_loses_it(written: str, repeated: str) -> None:
    file = kept(with_secrets(f"  token: {written}\n# not {repeated} any more"))
    assert not {*repeated.split()} & {*file.text.split("secrets:")[1].split()} - {"and"}
    assert file.text.endswith(f"{MASK} any more\n# end\n")


@pytest.mark.parametrize(
    "text",
    [
        with_secrets("  token: two words\n# two\n# words"),
        with_secrets("  token: one two\n    six\n# one\n# two  six"),
        with_secrets('  token: "0x75BCD15"') + "extras: {x: 0x75BCD15}\n",
        with_secrets('  token: "    "'),
    ],
)
def test_a_text_that_may_have_a_secret_in_pieces_is_not_kept(text: str) -> None:
    assert read_job(text).file is None


def calls(text: str) -> tuple[int, bool]:
    """The number of calls that removing the secrets takes, and whether the text is kept."""
    made, data = 0, parse_source(text).data

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal made
        made += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = without_secrets(text, data, "job.yaml")
    finally:
        sys.setprofile(before)
    return made, found is not None


def hostile(secrets: list[str], comment: str, size: int) -> str:
    """A text that repeats each of its secrets in a comment, filled up with other comments."""
    text = f"{MINIMAL}secrets:\n" + "".join(f'  k{at}: "{each}"\n' for at, each in enumerate(secrets))
    text += "".join(f"#{each}\n" for each in secrets)
    return text + comment * ((size - len(text)) // len(comment))


LIKE = [f"a{number:02}b" for number in range(99)]
NESTED = ["a" * length + "b" for length in range(9, 90)]


@pytest.mark.parametrize("size", [16 * 1024, pytest.param(256 * 1024, marks=pytest.mark.large)])
@pytest.mark.parametrize(
    ("secrets", "comment"),
    [(LIKE, "#\n"), (LIKE, "#a01b\n"), (LIKE, f"#{'a01' * 60}\n"), (NESTED, "#\n"), (NESTED, f"# {'a' * 99}\n")],
)
def test_what_a_text_costs_grows_with_its_length_alone(secrets: list[str], comment: str, size: int) -> None:
    made, _ = calls(hostile(secrets, comment, size))
    assert made < 20 * size


def test_ninety_nine_secrets_that_are_repeated_in_comments_are_all_replaced() -> None:
    text = hostile(LIKE, "#\n", 16 * 1024)
    masked = kept(text).text
    assert not any(each in masked for each in LIKE)


def test_a_text_whose_comments_are_compared_with_too_many_secrets_is_not_kept() -> None:
    assert calls(hostile(NESTED, f"# {'a' * 99}\n", 64 * 1024))[1] is False


def test_a_secret_of_many_lines_is_looked_for_as_a_whole_and_line_by_line() -> None:
    lines = "".join(f"    line {number} of a long secret\n" for number in range(20_000))
    file = kept(with_secrets(f"  key: |\n{lines}\n  # line 17003 of a long secret"))
    assert file.text.endswith(f"# {MASK}\n# end\n")


def test_a_placeholder_is_refused_at_its_place_with_what_to_do() -> None:
    for text in (registry(f'"{MASK}"'), with_secrets(f'  token: "{MASK}"')):
        with pytest.raises(SpecError) as refused:
            read_job(text)
        (problem,) = refused.value.problems
        assert problem.line and "--from JOB" in problem.message


@pytest.mark.parametrize("text", [registry(PASSWORD), with_secrets(f"  a: [x, {PASSWORD}]")])
def test_what_was_kept_gives_the_same_job_with_its_secrets(text: str) -> None:
    first = read_job(text)
    assert first.file is not None
    again = read_job(first.file.text, sealed=first.file.secrets)
    assert again == first


def test_a_password_is_not_given_to_another_registry() -> None:
    file = kept(registry(PASSWORD))
    with pytest.raises(SpecError):
        read_job(file.text.replace("registryuri: reg.example", "registryuri: elsewhere"), sealed=file.secrets)


WRITTEN = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]), min_size=4)


@given(WRITTEN, st.sampled_from([None, '"', "'"]))
def test_no_secret_however_written_is_left(secret: str, style: str | None) -> None:
    text = job_file() + yaml.safe_dump({"secrets": {"s": secret}}, allow_unicode=True, default_style=style)
    read = read_job(text)
    assert read.secrets["s"] == secret
    if read.file is not None:
        assert yaml.safe_load(read.file.text)["secrets"] == {"s": MASK}
        assert secret == MASK or secret not in read.file.text.replace(MASK, "")
