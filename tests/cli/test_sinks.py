"""Sinks in the settings: verdicts of a watch reach each of them, and doctor tells how each is doing."""

import json
import socket
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin
from tests.services.daemons import free_ports
from tocsin.app import sinks


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "c.toml"


def watch(tocsin: Tocsin, config: Path) -> str:
    done = tocsin("--config", config, "watch", "--demo", "--once", "--speed", "1")
    assert done.code == 0, done.err
    return done.err


def test_a_watch_writes_to_every_sink_and_one_that_is_away_keeps_nothing_from_the_others(
    tocsin: Tocsin, config: Path, tmp_path: Path
) -> None:
    [closed] = free_ports(1)
    config.write_text(f"""
[sinks.all]
kind = "log"
file = "{tmp_path}/all.jsonl"

[sinks.alarms]
kind = "log"
file = "{tmp_path}/alarms.jsonl"
levels = "warning,critical"

[sinks.chat]
kind = "webhook"
url = "http://127.0.0.1:{closed}/hook"
""")
    said = watch(tocsin, config)
    everything = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    alarms = [json.loads(line) for line in (tmp_path / "alarms.jsonl").read_text().splitlines()]
    assert everything
    assert alarms == [one for one in everything if one["level"] in ("warning", "critical")]
    assert f'sink "chat": http://127.0.0.1:{closed} cannot be reached' in said
    links = json.loads(tocsin("--config", config, "doctor", "--json").out)["links"]
    found = {link["link"]: link for link in links if link["link"].startswith("sink")}
    assert found["sink all"]["text"] == f"{len(everything)} sent, 0 waiting"
    assert found["sink all"]["status"] == "fine"
    assert found["sink chat"]["status"] == "broken"
    assert f"0 sent, {len(everything)} waiting; for 0 min" in found["sink chat"]["text"]


def test_a_broker_that_accepts_and_never_answers_does_not_keep_the_watch_from_ending(
    tocsin: Tocsin, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sinks, "GRACE", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        config.write_text(
            f'[sinks.mqtt]\nkind = "mqtt"\nhost = "127.0.0.1"\nport = {port}\ntimeout = 2\n'
            f'[sinks.log]\nkind = "log"\nfile = "{tmp_path}/log.jsonl"\n'
        )
        watch(tocsin, config)
    assert (tmp_path / "log.jsonl").read_text().count("\n") > 0


def test_messages_of_a_sink_that_was_removed_are_discarded(
    tocsin: Tocsin, config: Path, tmp_path: Path
) -> None:
    [closed] = free_ports(1)
    config.write_text(f'[sinks.chat]\nkind = "webhook"\nurl = "http://127.0.0.1:{closed}/"\n')
    watch(tocsin, config)
    assert "sink chat" in tocsin("--config", config, "doctor").out
    config.write_text("")
    watch(tocsin, config)
    assert "sink chat" not in tocsin("--config", config, "doctor").out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[sinks.a]\n", "[sinks.a] has no kind"),
        ('[sinks.a]\nkind = "pigeon"\n', 'is of the kind "pigeon"'),
        ('[sinks.a]\nkind = "log"\n', "sinks.a is of the kind log and needs file"),
        ('[sinks.a]\nkind = "kafka"\n', "needs kafka.brokers"),
        ('[sinks.a]\nkind = "mqtt"\n', "needs host"),
        ('[sinks.a]\nkind = "webhook"\n', "needs url or url_file"),
        ('[sinks.a]\nkind = "mail"\nsender = "a@b"\n', "needs address or address_file"),
        ('[sinks.a]\nkind = "mail"\nsender = "you"\naddress = "{user}@b"\n', "not an address"),
        ('[sinks.a]\nkind = "mqtt"\nhost = "h"\nlevels = "bad"\n', 'sinks.a.levels has "bad"'),
        ('[sinks.a]\nkind = "mqtt"\nhost = "h"\nmessages = "all"\n', 'sinks.a.messages has "all"'),
        ('[sinks.a]\nkind = "mqtt"\nbrokers = "h"\n', '"brokers" in [sinks.a]'),
        ('[sinks]\nkind = "mqtt"\n', "needs a name"),
    ],
)
def test_a_sink_that_cannot_work_is_named_with_what_it_lacks(
    tocsin: Tocsin, config: Path, text: str, sentence: str
) -> None:
    config.write_text(text)
    said = tocsin("--config", config, "config", "check")
    assert (said.code, sentence in said.err) == (1, True), said.err


def test_kind_and_keys_of_a_sink_may_come_from_different_places(
    tocsin: Tocsin, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('[sinks.hub]\nhost = "broker"\n')
    monkeypatch.setenv("TOCSIN_SINKS__hub__KIND", "mqtt")
    shown = tocsin("--config", config, "config", "show").out
    assert "sinks.hub.host" in shown
    assert "sinks.hub.keep_seconds" in shown
