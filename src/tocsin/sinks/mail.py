"""Mail: one digest per user and day, with the findings on the user's own jobs."""

import hashlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path

from tocsin.core.errors import SettingsError, SinkError, UnitError
from tocsin.core.ports import Message, Receipt
from tocsin.core.sink_settings import MailSinkSettings
from tocsin.core.units import parse_instant
from tocsin.sinks.mail_text import MailText, read_templates, write_mail
from tocsin.sinks.smtp import MailServer
from tocsin.sources.secrets import read_secret

__all__ = ["MailSink"]

MOST_DRY = 1000
"""Mails kept from dry runs."""
_USER = re.compile(r"[A-Za-z0-9._+-]{1,64}", re.ASCII)
_ADDRESS = re.compile(r"[^@\s<>,;:\x00-\x1f]{1,64}@[A-Za-z0-9.-]{1,253}")


class MailSink:
    """Users without an address, those who opted out, and those without findings get no mail."""

    batch = 10_000

    def __init__(
        self,
        name: str,
        settings: MailSinkSettings,
        *,
        spool: Path,
        zone: tzinfo,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._settings, self._spool, self._zone, self._clock = settings, spool, zone, clock
        if settings.messages != "verdict":
            raise SettingsError(
                f"sinks.{name} is of the kind mail and takes verdicts only; remove `messages`"
            )
        if settings.digest_hour > 23:
            raise SettingsError(f"sinks.{name}.digest_hour is {settings.digest_hour}; write 0 to 23")
        if not _ADDRESS.fullmatch(settings.sender):
            raise SettingsError(f'sinks.{name}.sender is "{settings.sender}", which is not an address')
        self._detectors = {word.strip() for word in settings.detectors.split(",")}
        self._password = read_secret(settings.password_file) if settings.password_file else ""
        self._read_files()
        self._done_until = 0.0
        """The last digest time for which all mails were sent."""

    def due(self, now: float) -> bool:
        return not self._settings.digest or self._hour(now) > self._done_until

    def close(self) -> None:
        """A connection lasts for one delivery."""

    def _read_files(self) -> None:
        """Called before each delivery, so that opting out takes effect without a restart."""
        settings = self._settings
        self._addresses = _read_pairs(settings.address_file, self.name)
        self._quiet = frozenset(_read_lines(settings.quiet_file, self.name))
        self._templates = read_templates(Path(settings.templates))

    def send(self, messages: Sequence[Message]) -> Iterator[Receipt]:
        self._read_files()
        hour = self._hour(self._clock())
        due = [one for one in messages if not self._settings.digest or _at(one) < hour]
        later, server = 0, MailServer(self._settings, self._password)
        try:
            for user, own in self._by_user(due).items():
                mail = self._mail(user, own)
                refusal = self._deliver(server, mail) if mail else ""
                if refusal is None:
                    later += len(own)
                else:
                    yield Receipt(own, refusal)
        finally:
            server.close()
        if later:
            raise SinkError(f"the mail server {self._settings.host} deferred mails with {later:,} verdicts")
        if len(due) < self.batch:
            self._done_until = hour

    def _hour(self, now: float) -> float:
        """The last time of day at or before `now` at which digests are sent."""
        local = datetime.fromtimestamp(now, self._zone)
        hour = local.replace(hour=self._settings.digest_hour, minute=0, second=0, microsecond=0)
        return (hour if hour <= local else hour - timedelta(days=1)).timestamp()

    def _by_user(self, messages: Sequence[Message]) -> dict[str, list[Message]]:
        """In the order of each user's first message; without a digest, each message is separate."""
        found: dict[str, list[Message]] = {}
        for message in messages:
            user = str(message.document.get("user") or "")
            found.setdefault(user if self._settings.digest else f"{user}\0{message.id}", []).append(message)
        return found

    def _mail(self, group: str, messages: Sequence[Message]) -> EmailMessage | None:
        user = group.partition("\0")[0]
        address = self._address(user)
        wanted = [m for m in messages if f"account:{m.document.get('account')}" not in self._quiet]
        if address is None or user in self._quiet or not wanted:
            return None
        text = write_mail(self._templates, user, wanted, self._detectors)
        return self._compose(address, text, wanted) if text else None

    def _address(self, user: str) -> str | None:
        if not _USER.fullmatch(user):
            return None
        found = self._addresses.get(user) or self._settings.address.replace("{user}", user)
        return found if _ADDRESS.fullmatch(found) else None

    def _compose(self, address: str, text: MailText, messages: Sequence[Message]) -> EmailMessage:
        mail = EmailMessage()
        mail["From"], mail["To"], mail["Subject"] = self._settings.sender, address, text.subject
        mail["Date"] = format_datetime(datetime.fromtimestamp(self._clock(), self._zone))
        # the same verdicts to the same address give the same id, so that a repeated mail is recognised
        seed = " ".join([address, *(message.reference for message in messages)])
        domain = self._settings.sender.rpartition("@")[2]
        mail["Message-ID"] = f"<{hashlib.sha256(seed.encode()).hexdigest()[:32]}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(text.text)
        return mail

    def _deliver(self, server: MailServer, mail: EmailMessage) -> str | None:
        """Why it will never be delivered; empty if it was, None if it must be retried."""
        if not self._settings.dry_run:
            return server.send(mail)
        try:
            self._keep(mail)
        except OSError as error:
            raise SinkError(f"no mail can be written to {self._spool}: {error.strerror}") from None
        return ""

    def _keep(self, mail: EmailMessage) -> None:
        self._spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = str(mail["Message-ID"]).strip("<>").partition("@")[0]
        (self._spool / f"{name}.eml").write_bytes(mail.as_bytes())
        files = sorted(self._spool.glob("*.eml"), key=lambda file: file.stat().st_mtime)
        for file in files[:-MOST_DRY]:
            file.unlink()


def _at(message: Message) -> int:
    """When the verdict was given."""
    try:
        return parse_instant(str(message.document.get("at")), UTC) or 0
    except UnitError:
        return 0


def _read_lines(file: str, name: str) -> list[str]:
    if not file:
        return []
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the file {file} of sinks.{name} cannot be read: {error}") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _read_pairs(file: str, name: str) -> Mapping[str, str]:
    pairs = [line.split() for line in _read_lines(file, name)]
    for pair in pairs:
        if len(pair) != 2 or not _ADDRESS.fullmatch(pair[1]):
            raise SettingsError(f'"{" ".join(pair)}" in {file} is not a line "USER ADDRESS"')
    return {pair[0]: pair[1] for pair in pairs}
