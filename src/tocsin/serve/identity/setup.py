"""Puts identity together from the settings: `secured` is all that a server needs of it."""

from pathlib import Path

from tocsin.app.app import App
from tocsin.app.clusters import rest_client
from tocsin.app.private_data import PrivateData
from tocsin.app.roles import RoleLists
from tocsin.core.errors import SettingsError
from tocsin.core.settings import ClusterSettings
from tocsin.serve.identity import asgi
from tocsin.serve.identity.bearer import Bearer
from tocsin.serve.identity.browser import SecurityHeaders
from tocsin.serve.identity.gate import Gate
from tocsin.serve.identity.identification import Identification
from tocsin.serve.identity.limits import BodyLimit, Deadline
from tocsin.serve.identity.login import Login
from tocsin.serve.identity.oidc import Oidc
from tocsin.serve.identity.sessions import Sessions
from tocsin.serve.identity.slurm_check import SlurmCheck
from tocsin.serve.identity.slurm_token import SlurmToken
from tocsin.serve.identity.ways import Demo, Proxy, Session, Socket, Way
from tocsin.sources.secrets import read_secret

__all__ = ["identification", "secured"]


def secured(inner: asgi.App, app: App, *, url: str, demo: bool = False) -> asgi.App:
    """The application behind its gate and limits. `url`: where it listens, for login links without a public_url.

    In the demo, everybody on this host is an operator.
    """
    settings = app.settings.service
    roles, public_url = RoleLists(settings), settings.public_url.rstrip("/")
    oidc = _oidc(app, public_url or url)
    sessions = Sessions(app.store, hours=settings.session_hours)
    login = Login(inner, sessions, roles, url=public_url or url, public_url=public_url, oidc=oidc)
    gate = Gate(
        login,
        identification(app, roles, demo=demo),
        public_url=public_url,
        oidc=oidc is not None,
        per_minute=settings.requests_per_minute,
        private_data=frozenset if demo else PrivateData(),
    )
    return SecurityHeaders(
        Deadline(BodyLimit(gate, settings.max_body_megabytes << 20), settings.request_seconds)
    )


def identification(app: App, roles: RoleLists, *, demo: bool = False) -> Identification:
    settings = app.settings.service
    explicit: list[Way] = [Bearer(app.store, roles), SlurmToken(_slurm_check(app), roles)]
    if settings.proxy_header:
        explicit.append(Proxy(settings.proxy_header, settings.proxy_from, roles))
    ambient: list[Way] = [Session(app.store, settings.public_url.rstrip("/")), Socket(roles)]
    return Identification(explicit, [*ambient, Demo()] if demo else ambient)


def _slurm_check(app: App) -> SlurmCheck | None:
    named, clusters = app.settings.service.slurm_tokens, app.settings.cluster
    if named and (named not in clusters or not clusters[named].rest_url):
        raise SettingsError(
            f'service.slurm_tokens is "{named}", and there is no rest_url in [cluster.{named}]'
        )
    able = [clusters[named]] if named else [cluster for cluster in clusters.values() if cluster.rest_url]
    return SlurmCheck(able[0].rest_url, lambda: _diag_path(able[0])) if len(able) == 1 else None


def _diag_path(cluster: ClusterSettings) -> str:
    with rest_client(cluster) as rest:
        version, adapter = rest.served("slurm")
    return f"/slurm/{version}/diag{adapter.slash}"


def _oidc(app: App, url: str) -> Oidc | None:
    settings = app.settings.service
    if not settings.oidc_issuer:
        return None
    secret = read_secret(Path(settings.oidc_secret_file)) if settings.oidc_secret_file else ""
    return Oidc(
        settings.oidc_issuer,
        settings.oidc_client_id,
        redirect=f"{url}/login/oidc/callback",
        secret=secret,
        user_claim=settings.oidc_user_claim,
    )
