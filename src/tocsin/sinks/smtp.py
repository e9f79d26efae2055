"""A connection to an SMTP server."""

import smtplib
import ssl
from contextlib import suppress
from email.message import EmailMessage

from tocsin.core.errors import SinkError
from tocsin.core.sink_settings import MailSinkSettings

__all__ = ["MailServer"]


class MailServer:
    """A connection to the SMTP server, opened for the first mail."""

    def __init__(self, settings: MailSinkSettings, password: str) -> None:
        self._settings, self._password = settings, password
        self._smtp: smtplib.SMTP | None = None

    def send(self, mail: EmailMessage) -> str | None:
        """Why the server will never take it; empty if it did, None if it must be retried."""
        try:
            self._open().send_message(mail)
            return ""
        except smtplib.SMTPRecipientsRefused as error:
            code = next(iter(error.recipients.values()))[0]
        except smtplib.SMTPDataError as error:
            code = error.smtp_code
        except smtplib.SMTPResponseException as error:
            # without the text: the reply to a login may repeat what was sent
            raise SinkError(f"{self._place}: {type(error).__name__} {error.smtp_code}") from None
        except (OSError, smtplib.SMTPException) as error:
            raise SinkError(f"{self._place}: {error}") from None
        return f"the mail server answered {code}" if code >= 500 else None

    @property
    def _place(self) -> str:
        return f"the mail server {self._settings.host} cannot be used"

    def close(self) -> None:
        if self._smtp is not None:
            with suppress(OSError, smtplib.SMTPException):
                self._smtp.quit()
            self._smtp = None

    def _open(self) -> smtplib.SMTP:
        if self._smtp is None:
            settings = self._settings
            port = settings.port or (587 if settings.tls else 25)
            self._smtp = smtplib.SMTP(settings.host, port, timeout=settings.timeout)
            if settings.tls:
                self._smtp.starttls(context=ssl.create_default_context(cafile=settings.ca_file or None))
            if settings.user:
                self._smtp.login(settings.user, self._password)
        return self._smtp
