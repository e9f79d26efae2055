"""Assembles identity from the settings: `secured` is all that a server needs."""

from tocsin.app.app import App
from tocsin.app.clusters import slurm_confs
from tocsin.app.credentials import Credentials, secret_in
from tocsin.app.private_data import PrivateData
from tocsin.app.roles import RoleLists
from tocsin.app.slurm_check import slurm_check
from tocsin.serve.identity import asgi
from tocsin.serve.identity.authenticators import Authenticator, Demo, Proxy, Session, Socket
from tocsin.serve.identity.bearer import Bearer
from tocsin.serve.identity.browser import SecurityHeaders
from tocsin.serve.identity.gate import Gate
from tocsin.serve.identity.identification import Identification
from tocsin.serve.identity.limits import BodyLimit, Deadline
from tocsin.serve.identity.login import Login
from tocsin.serve.identity.oidc import Oidc
from tocsin.serve.identity.sessions import Sessions
from tocsin.serve.identity.slurm_token import SlurmToken

__all__ = ["identification", "secured"]


def secured(inner: asgi.App, app: App, *, url: str, demo: bool = False) -> asgi.App:
    """The application behind its gate and limits. `url`: where it listens, for login links without a public_url.

    In the demo, everybody on this host is an operator.
    """
    settings = app.settings.service
    roles, public_url = RoleLists(settings), settings.public_url.rstrip("/")
    oidc = _oidc(app, public_url or url)
    sessions = Sessions(Credentials(app), hours=settings.session_hours)
    login = Login(inner, sessions, roles, url=public_url or url, public_url=public_url, oidc=oidc)
    gate = Gate(
        login,
        identification(app, roles, demo=demo),
        public_url=public_url,
        oidc=oidc is not None,
        per_minute=settings.requests_per_minute,
        private_data=frozenset if demo else PrivateData(slurm_confs(app)),
    )
    return SecurityHeaders(
        Deadline(BodyLimit(gate, settings.max_body_megabytes << 20), settings.request_seconds)
    )


def identification(app: App, roles: RoleLists, *, demo: bool = False) -> Identification:
    settings, credentials = app.settings.service, Credentials(app)
    explicit: list[Authenticator] = [Bearer(credentials, roles), SlurmToken(slurm_check(app), roles)]
    if settings.proxy_header:
        explicit.append(Proxy(settings.proxy_header, settings.proxy_from, roles))
    ambient: list[Authenticator] = [Session(credentials, settings.public_url.rstrip("/")), Socket(roles)]
    return Identification(explicit, [*ambient, Demo()] if demo else ambient)


def _oidc(app: App, url: str) -> Oidc | None:
    settings = app.settings.service
    if not settings.oidc_issuer:
        return None
    secret = secret_in(settings.oidc_secret_file) if settings.oidc_secret_file else ""
    return Oidc(
        settings.oidc_issuer,
        settings.oidc_client_id,
        redirect=f"{url}/login/oidc/callback",
        secret=secret,
        user_claim=settings.oidc_user_claim,
    )
