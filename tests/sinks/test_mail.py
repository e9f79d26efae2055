"""Mail: one digest per user and day with the user's own jobs, by a real SMTP server."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.kits.outbox import message, send, try_to_send
from tests.services.smtp import SmtpServer, read_mail
from tocsin.core.errors import SettingsError, SinkError
from tocsin.core.sink_settings import MailSinkSettings
from tocsin.core.verdict import Advice, CaseReference, Finding, Level
from tocsin.sinks.mail import MailSink

MORNING = int(datetime(2026, 11, 17, 7, 0, tzinfo=UTC).timestamp())


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SmtpServer]:
    with SmtpServer(tmp_path / "mails") as started:
        yield started


def sink_of(tmp_path: Path, server: SmtpServer | None = None, now: int = MORNING, **more: Any) -> MailSink:
    settings: dict[str, Any] = {
        "kind": "mail",
        "sender": "tocsin@example.org",
        "address": "{user}@example.org",
        "templates": str(tmp_path / "templates"),
        "dry_run": server is None,
        **({"host": "127.0.0.1", "port": server.port} if server else {}),
        **more,
    }
    spool = tmp_path / "spool"
    return MailSink("mail", MailSinkSettings(**settings), spool=spool, zone=UTC, clock=lambda: now)


def warning(text: str = "likely to run out of memory (84%)", **more: Any) -> Finding:
    plain: dict[str, Any] = {"detector": "failure", "kind": "failure", "level": Level.WARNING}
    return Finding(text=text, **{**plain, **more})


def alarm(number: int, user: str = "ann", at: int = MORNING - 60, **more: Any) -> Any:
    findings = more.pop("findings", [warning()])
    return message(number, user=user, at=at, level=Level.WARNING, findings=findings, name="train", **more)


def test_each_user_gets_one_mail_with_the_own_jobs_of_the_day(tmp_path: Path, server: SmtpServer) -> None:
    advice = [Advice(change="request 8 GB", why="similar jobs needed 6 GB")]
    messages = [alarm(1), alarm(2, "bob"), alarm(3, advice=advice)]
    assert sorted(send(sink_of(tmp_path, server), messages)) == [1, 2, 3]
    to_ann, to_bob = server.mails()
    assert (to_ann["To"], to_ann["From"]) == ("ann@example.org", "tocsin@example.org")
    assert to_ann["Subject"] == "tocsin: 2 of your jobs may need attention"
    assert to_ann["Auto-Submitted"] == "auto-generated"
    text = to_ann.get_content()
    assert "Job 1 on lab (train), warning at submit" in text
    assert "likely to run out of memory (84%)" in text
    assert "→ request 8 GB: similar jobs needed 6 GB" in text
    assert "Job 2" not in text
    assert "Job 2 on lab" in to_bob.get_content()


def test_text_of_others_cannot_hide_or_forge_lines_of_a_mail(tmp_path: Path, server: SmtpServer) -> None:
    hostile = "a\u202eb\x9b31m\r\nBcc: x\ud800\u2066"
    advice = [Advice(change=hostile, why=hostile)]
    assert [*send(sink_of(tmp_path, server), [alarm(1, findings=[warning(hostile)], advice=advice)])] == [1]
    text = server.mails()[0].get_content()
    assert "a\\u202eb\\x9b31m\\r\\nBcc: x\\ud800\\u2066" in text
    assert all(character.isprintable() or character in "\r\n" for character in text)


def test_a_digest_is_sent_once_a_day_at_its_hour(tmp_path: Path, server: SmtpServer) -> None:
    sink = sink_of(tmp_path, server, now=MORNING + 3600)
    today, tomorrow = alarm(1), alarm(2, at=MORNING + 1800)
    assert sink.due(MORNING + 3600)
    assert send(sink, [today, tomorrow]) == [1]
    assert not sink.due(MORNING + 7200)
    assert sink.due(MORNING + 86400)
    restarted = sink_of(tmp_path, server, now=MORNING + 7200)
    assert send(restarted, [tomorrow]) == []
    next_day = sink_of(tmp_path, server, now=MORNING + 86400)
    assert send(next_day, [tomorrow]) == [2]
    assert [mail["To"] for mail in server.mails()] == ["ann@example.org"] * 2


def test_without_a_digest_each_verdict_is_a_mail(tmp_path: Path, server: SmtpServer) -> None:
    send(sink_of(tmp_path, server, digest=False), [alarm(1, at=MORNING + 5), alarm(2, at=MORNING + 6)])
    assert [mail["Subject"] for mail in server.mails()] == ["tocsin: 1 of your jobs may need attention"] * 2


def test_a_user_never_learns_what_betrayed_a_misuse(tmp_path: Path, server: SmtpServer) -> None:
    betrayed = [
        warning("the script mines with a probability of 99%", detector="workload", operation="cryptomining"),
        warning("classified as cryptomining", detector="workload", kind="rogue", evidence=["line 3: xmrig"]),
        warning("case 4 was confirmed", detector="cases", case=CaseReference(cause="x", number=4)),
        warning("suddenly runs cryptomining", operation="cryptomining"),
    ]
    messages = [alarm(1, findings=betrayed), alarm(2, "bob", findings=[*betrayed, warning()])]
    assert send(sink_of(tmp_path, server), messages) == [1, 2]
    [mail] = server.mails()
    text = str(mail)
    assert mail["To"] == "bob@example.org"
    assert not any(word in text for word in ("mining", "xmrig", "mines", "case"))


def test_quiet_users_and_accounts_and_those_without_an_address_get_no_mail(
    tmp_path: Path, server: SmtpServer
) -> None:
    quiet = tmp_path / "quiet"
    quiet.write_text("# on leave\nann\naccount:silent\n")
    messages = [
        alarm(1, "ann"),
        alarm(2, "bob", account="silent"),
        alarm(3, "eve\nBcc: all@example.org"),
        alarm(4, None),
        alarm(5, "dan"),
    ]
    sent = send(sink_of(tmp_path, server, quiet_file=str(quiet)), messages)
    assert sorted(sent) == [1, 2, 3, 4, 5]
    assert [mail["To"] for mail in server.mails()] == ["dan@example.org"]


def test_a_user_who_asks_for_quiet_gets_it_without_a_restart(tmp_path: Path, server: SmtpServer) -> None:
    quiet = tmp_path / "quiet"
    quiet.touch()
    sink = sink_of(tmp_path, server, quiet_file=str(quiet), digest=False)
    send(sink, [alarm(1)])
    quiet.write_text("ann\n")
    send(sink, [alarm(2)])
    assert len(server.mails()) == 1


def test_addresses_can_come_from_a_file(tmp_path: Path, server: SmtpServer) -> None:
    book = tmp_path / "addresses"
    book.write_text("ann ann.smith@physics.example.org\n")
    send(sink_of(tmp_path, server, address="", address_file=str(book)), [alarm(1), alarm(2, "bob")])
    assert [mail["To"] for mail in server.mails()] == ["ann.smith@physics.example.org"]
    book.write_text("ann\n")
    with pytest.raises(SettingsError, match="USER ADDRESS"):
        sink_of(tmp_path, server, address_file=str(book))


def test_a_dry_run_writes_mails_to_files_and_sends_none(tmp_path: Path) -> None:
    sink = sink_of(tmp_path, None, host="does.not.exist.invalid")
    for _ in range(2):
        assert send(sink, [alarm(1)]) == [1]
    [file] = (tmp_path / "spool").iterdir()
    assert "Job 1 on lab" in read_mail(file).get_content()


def test_of_dry_runs_only_the_last_mails_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.sinks.mail.MOST_DRY", 2)
    send(sink_of(tmp_path, digest=False), [alarm(number) for number in range(5)])
    assert len(list((tmp_path / "spool").iterdir())) == 2


def test_the_templates_of_a_site_are_used_and_never_run(tmp_path: Path, server: SmtpServer) -> None:
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "mail.txt").write_text(
        "Subject: Für $user: $count\n\n$jobs ${user.__class__} $$5 {user} $unknown\n"
    )
    (folder / "mail-job.txt").write_text("<$name>\n")
    send(sink_of(tmp_path, server), [alarm(1, findings=[warning("$user {0}")])])
    [mail] = server.mails()
    assert mail["Subject"] == "Für ann: 1"
    assert mail.get_content().splitlines() == ["<train> ${user.__class__} $5 {user} $unknown"]
    (folder / "mail.txt").write_text("no subject")
    with pytest.raises(SettingsError, match="Subject"):
        sink_of(tmp_path, server)


def test_a_mail_that_is_refused_or_put_off_does_not_keep_the_others(
    tmp_path: Path, server: SmtpServer
) -> None:
    sink = sink_of(tmp_path, server)
    receipts, problem = try_to_send(sink, [alarm(1, "full"), alarm(2, "gone"), alarm(3)])
    assert "deferred mails with 1 verdicts" in problem
    assert [(receipt.messages[0].id, bool(receipt.refused)) for receipt in receipts] == [
        (2, True),
        (3, False),
    ]
    server.empty_mailbox()
    assert sink.due(MORNING)
    assert send(sink, [alarm(1, "full")]) == [1]
    assert [mail["To"] for mail in server.mails()] == ["ann@example.org", "full@example.org"]


def test_the_password_is_used_and_never_shown(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("sw0rdfish")
    secret.chmod(0o600)
    with SmtpServer(tmp_path / "mails", password="sw0rdfish") as server:
        login = {"user": "tocsin", "password_file": str(secret)}
        assert send(sink_of(tmp_path, server, **login), [alarm(1)]) == [1]
        secret.write_text("0ther-fish")
        with pytest.raises(SinkError, match="535") as refused:
            send(sink_of(tmp_path, server, **login), [alarm(1)])
        assert "fish" not in str(refused.value)


def test_a_mail_server_that_is_away_is_an_error_that_names_it(tmp_path: Path, server: SmtpServer) -> None:
    sink = sink_of(tmp_path, server)
    server.__exit__()
    with pytest.raises(SinkError, match=r"the mail server 127\.0\.0\.1 cannot be used"):
        send(sink, [alarm(1)])
