"""The allow-list: its rules, its file, and what happens when the file is broken."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.app.allow_list_reader import AllowListReader
from tocsin.core.allow_list import AllowEntry, DefaultRule, SubjectKind
from tocsin.core.errors import SettingsError
from tocsin.judge.allow import DEFAULTS, AllowList
from tocsin.judge.allow_file import parse
from tocsin.store.allow import add, entries, set_default
from tocsin.store.database import Store, open_store
from tocsin.store.home import Home

NEW_YEAR = 1798761600  # 2027-01-01 in UTC
NOW = 1_770_000_000  # February 2026
GOOD = """
[default]
ai = "listed"

[[allow]]
operation = "ai"
account = "physics"
from = 2026-06-01
until = 2026-12-31
reason = "ticket 47"
granted_by = "ada"
"""


def job(**more: object) -> dict[str, object]:
    return {"user": "ann", "account": "physics", "group": "staff", "submit": NEW_YEAR - 1, **more}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(Home(tmp_path / "home").prepare().url) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "allow.toml"
    path.write_text(GOOD)
    return path


def listed(text: str) -> AllowList:
    return AllowList(*parse(text, Path("allow.toml"), known=DEFAULTS))


def test_what_holds_when_nobody_said_anything() -> None:
    rules = AllowList()
    assert rules.ruling("ai", job()).allowed
    assert rules.ruling("cryptomining", job()) == (rules.ruling("cryptomining", job(user="root")))
    assert rules.ruling("cryptomining", job()).rule == "cryptomining is never allowed"
    assert rules.ruling("cyber", job()).rule == (
        "cyber is allowed only for listed users, accounts and groups; none of user ann, account physics, group staff is listed"
    )
    assert not rules.ruling("an_operation_of_the_site", job()).allowed


def test_a_listed_account_may_from_its_first_day_to_its_last() -> None:
    rules = listed(GOOD)
    ruling = rules.ruling("ai", job())
    assert ruling.allowed
    assert ruling.rule == (
        "ai is allowed only for listed users, accounts and groups; account physics is listed from 2026-06-01T00:00:00Z until "
        "2027-01-01T00:00:00Z (allow.toml, line 5: ticket 47, granted by ada)"
    )
    late = rules.ruling("ai", job(submit=NEW_YEAR))
    assert not late.allowed
    assert "account physics is listed from" in late.rule
    assert not rules.ruling("ai", job(account="chemistry")).allowed


@pytest.mark.parametrize(("key", "value"), [("user", "ann"), ("group", "staff"), ("account", "physics")])
def test_users_groups_and_accounts_can_be_listed(key: str, value: str) -> None:
    rules = listed(f'[[allow]]\noperation = "cyber"\n{key} = "{value}"\n')
    assert rules.ruling("cyber", job()).allowed
    assert not rules.ruling("cyber", job(**{key: None})).allowed


def test_nobody_may_what_is_never_allowed() -> None:
    assert (
        not listed('[[allow]]\noperation = "cryptomining"\nuser = "ann"\n')
        .ruling("cryptomining", job())
        .allowed
    )


def test_dates_are_days_of_the_place() -> None:
    _, [rome] = parse(GOOD, Path("x"), known=DEFAULTS, zone=ZoneInfo("Europe/Rome"))
    assert rome.until == NEW_YEAR - 3600


BROKEN = {
    "[[allow]\n": (1, "Expected"),
    "[default]\nai = 'sometimes'\n": (2, 'write "allowed", "listed" or "never"'),
    "\n[defaults]\n": (2, "neither [default] nor [[allow]]"),
    "[[allow]]\noperation='ai'\nuser='a'\n\n[[allow]]\noperation='ai'\n": (5, "must name one of user"),
    "[[allow]]\noperation='ai'\nuser='a'\ngroup='b'\n": (1, "must name one of user"),
    "[[allow]]\nuser='a'\n": (1, "names no operation"),
    "[[allow]]\noperation='ai'\nuser='a'\nuntill=2026-01-01\n": (4, '"untill" is not a key'),
    "[[allow]]\noperation='ai'\nuser='a'\nuntil='soon'\n": (4, "write a date"),
    "[[allow]]\noperation='ai'\nuser=7\n": (3, "it must be text"),
    "[[allow]]\noperation='ai'\nuser='a'\nfrom=2026-02-01\nuntil=2026-01-01\n": (5, "ends before it begins"),
    "[[allow]]\noperation='ai'\nuser='a'\nfrom=12:30:00\n": (4, 'from is "12:30:00"; write a date'),
    "[[allow]]\noperation='ai'\nuser='a'\nfrom=9999-12-31\n": (4, "from 1970 to 9998"),
    "[[allow]]\noperation='ai'\nuser='a'\nuntil=0001-01-01\n": (4, "from 1970 to 9998"),
    "[default]\nai = listed\n": (2, "Invalid value; put text in quotes: ai = listed"),
    "[[allow]]\nuntil=2026-13-01\n": (2, ": until=2026-13-01"),
    "allow = 3\n": (1, "write [[allow]]"),
    "a = [\n1,\n": (3, ""),
    "[default]\ncyber='never'\nAI='never'\n": (3, '"AI" is not an operation; did you mean ai?'),
    "[[allow]]\nuser='a'\noperation='cybre'\n": (
        3,
        "did you mean cyber? The operations are ai, cryptomining, cyber",
    ),
    "[[allow]]\nuser='a'\noperation='Cyber'\n": (3, "did you mean cyber?"),
}


@pytest.mark.parametrize("until", ["9999-12-31", "9999-12-31T23:59:59+01:00"])
def test_the_last_year_of_the_calendar_means_for_ever(until: str) -> None:
    text = f"[[allow]]\noperation='ai'\nuser='a'\nuntil={until}\n"
    _, [grant] = parse(text, Path("x"), known=DEFAULTS)
    assert grant.until is None


def test_a_mark_before_the_first_letter_is_no_letter(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "marked.toml"
    file.write_text("[default]\nai = 'never'\n", "utf-8-sig")
    assert AllowListReader(lambda: entries(store), file).current().rule("ai", NOW).name == DefaultRule.NEVER


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_is_refused_with_line_and_reason(text: str) -> None:
    line, reason = BROKEN[text]
    with pytest.raises(SettingsError) as refused:
        parse(text, Path("/etc/tocsin/allow.toml"), known=DEFAULTS)
    assert f"/etc/tocsin/allow.toml, line {line}: " in str(refused.value)
    assert reason in str(refused.value)


def test_the_last_good_list_stays_in_force(store: Store, file: Path, tmp_path: Path) -> None:
    said: list[str] = []
    book = AllowListReader(lambda: entries(store), file, kept=tmp_path / "kept.toml", notify=said.append)
    assert book.current().ruling("ai", job()).allowed
    file.write_text(GOOD + "[[allow]]\noperation = 3\n")
    for _ in range(3):
        assert book.current().ruling("ai", job()).allowed
    [sentence] = said
    assert "line 13: operation is 3; it must be text; its last valid version stays in force" in sentence
    # A new process knows it, too.
    again = AllowListReader(lambda: entries(store), file, kept=tmp_path / "kept.toml", notify=said.append)
    assert again.current().rule("ai", NOW).name == DefaultRule.LISTED
    file.write_text(GOOD.replace("physics", "biology"))
    assert not book.current().ruling("ai", job()).allowed


def test_without_a_good_one_the_built_in_rules_hold_and_that_is_said_once(
    store: Store, tmp_path: Path
) -> None:
    said: list[str] = []
    book = AllowListReader(
        lambda: entries(store), tmp_path / "not-there.toml", kept=tmp_path / "kept.toml", notify=said.append
    )
    add(store, AllowEntry(operation="cyber", kind=SubjectKind.USER, name="bob"), at=1)
    for _ in range(3):
        rules = book.current()
        assert {name: rules.rule(name, NOW).name for name in DEFAULTS} == DEFAULTS
        assert rules.ruling("cyber", job(user="bob")).allowed
        assert not rules.ruling("cyber", job()).allowed
    [sentence] = said
    assert "not-there.toml cannot be read: No such file" in sentence
    assert "the built-in rules" in sentence
    assert book.current().problem == sentence
    (tmp_path / "not-there.toml").write_text(GOOD)
    assert book.current().rule("ai", NOW).name == DefaultRule.LISTED
    assert book.current().problem is None


def test_an_operation_that_the_site_has_taught_meanwhile_is_known(store: Store, file: Path) -> None:
    file.write_text('[default]\nrendering = "never"\n')
    names: dict[str, int | None] = {"ai": None}
    book = AllowListReader(lambda: entries(store), file, operations=lambda: names)
    assert book.current().rule("rendering", NOW).name == DefaultRule.LISTED
    names["rendering"] = None
    assert book.current().rule("rendering", NOW).name == DefaultRule.NEVER


def test_a_rule_of_an_operation_that_is_gone_stays_in_force(store: Store, file: Path, tmp_path: Path) -> None:
    file.write_text('[default]\nrendering = "never"\ncyber = "never"\n')
    AllowListReader(
        lambda: entries(store),
        file,
        kept=tmp_path / "kept.toml",
        operations=lambda: {"cyber": None, "rendering": None},
    ).current()
    later = AllowListReader(
        lambda: entries(store), file, kept=tmp_path / "kept.toml", operations=lambda: {"cyber": None}
    )
    assert later.current().rule("cyber", NOW).name == DefaultRule.NEVER


def test_a_file_that_everybody_may_write_to_is_refused(store: Store, file: Path) -> None:
    file.chmod(0o666)
    book = AllowListReader(lambda: entries(store), file)
    assert book.current().rule("ai", NOW).name == DefaultRule.ALLOWED
    assert "run: chmod o-w" in str(book.current().problem)


def test_a_file_with_bad_bytes_is_refused_with_its_line(store: Store, file: Path) -> None:
    file.write_bytes(b"[default]\n# \xff\n")
    book = AllowListReader(lambda: entries(store), file)
    book.current()
    assert "line 2: not UTF-8" in str(book.current().problem)


def test_a_rule_judges_only_jobs_submitted_in_its_time(store: Store) -> None:
    february, november = NOW, NOW + 280 * 86_400
    book = AllowListReader(lambda: entries(store))
    set_default(store, "ai", DefaultRule.NEVER, at=november, who="ada")
    add(store, AllowEntry(operation="cyber", kind=SubjectKind.USER, name="ann"), at=november)
    rules = book.current()
    assert rules.ruling("ai", job(submit=february)).rule == "ai is allowed for everybody"
    assert not rules.ruling("ai", job(submit=november)).allowed
    assert not rules.ruling("cyber", job(submit=february)).allowed  # nor does a later permission
    assert rules.ruling("cyber", job(submit=november)).allowed
    set_default(store, "ai", DefaultRule.ALLOWED, at=november + 60, who="ada")
    later = [
        book.current().ruling("ai", job(submit=at)).allowed for at in (february, november, november + 60)
    ]
    assert later == [True, False, True]


def test_an_operation_that_the_site_added_is_not_forbidden_before_it_was_known(store: Store) -> None:
    rules = AllowListReader(lambda: [], operations=lambda: {"rendering": NOW}).current()
    assert rules.ruling("rendering", job(submit=NOW - 1)).allowed
    assert not rules.ruling("rendering", job(submit=NOW)).allowed


def test_a_rule_of_the_file_may_carry_dates() -> None:
    rules = listed('[default]\nai = { rule = "never", from = 2026-11-01, until = 2026-11-30 }\n')
    days = [datetime(2026, *day, tzinfo=UTC).timestamp() for day in ((2, 3), (11, 1), (11, 30), (12, 1))]
    assert [rules.ruling("ai", job(submit=int(day))).allowed for day in days] == [True, False, False, True]
    with pytest.raises(SettingsError, match=r'line 2: ai is .*write "allowed"'):
        listed('[default]\nai = { rule = "never", form = 2026-11-01 }\n')


def test_the_store_adds_to_the_file_and_the_file_decides_the_rule(store: Store, file: Path) -> None:
    book = AllowListReader(lambda: entries(store), file)
    set_default(store, "ai", DefaultRule.NEVER, at=1, who="ada")
    set_default(store, "chess", DefaultRule.ALLOWED, at=1, who="ada")
    add(store, AllowEntry(operation="ai", kind=SubjectKind.USER, name="bob"), at=1)
    current = book.current()
    assert [current.rule(name, NOW).name for name in ("ai", "chess")] == ["listed", "allowed"]
    assert current.ruling("ai", job(user="bob", account="x")).allowed


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200) | st.text("[]alow=\"\n='{}.,-0123default", max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text, Path("x"), known=DEFAULTS, zone=UTC)
    except SettingsError as error:
        assert ", line " in str(error)


def test_the_kept_copy_is_made_as_a_whole(store: Store, file: Path, tmp_path: Path) -> None:
    AllowListReader(lambda: entries(store), file, kept=tmp_path / "kept.toml").current()
    assert (tmp_path / "kept.toml").read_text() == GOOD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["allow.toml", "home", "kept.toml"]
