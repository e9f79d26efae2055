"""The certificate and key for TLS on the service's port."""

import ssl

from tocsin.app.app import App
from tocsin.app.credentials import secret_in
from tocsin.core.errors import SettingsError

__all__ = ["tls_context"]


def tls_context(app: App) -> ssl.SSLContext | None:
    """The context for the files in the settings; None if there are none."""
    settings = app.settings.service
    certificate, key = settings.tls_certificate_file, settings.tls_key_file
    if not certificate and not key:
        return None
    if not certificate or not key:
        given, absent = ("certificate", "key") if certificate else ("key", "certificate")
        raise SettingsError(
            f"service.tls_{given}_file is set, but service.tls_{absent}_file is not; TLS needs both"
        )
    secret_in(key)  # refused if others can read it
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2

    def no_password() -> str:
        raise SettingsError(
            f"the key in {key} is encrypted, and a service cannot ask for its password; store it without one, "
            "readable only by the service's user"
        )

    try:
        context.load_cert_chain(certificate, key, no_password)
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or str(error)
        raise SettingsError(
            f"cannot use the certificate in {certificate} with the key in {key} ({reason}); "
            "both must be PEM files that belong together"
        ) from None
    return context
