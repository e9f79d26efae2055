"""Identifies who is asking by the one credential of a request."""

from collections.abc import Sequence

from tocsin.core.errors import Unauthenticated
from tocsin.serve.identity.asgi import Scope
from tocsin.serve.identity.authenticators import Authenticator
from tocsin.serve.identity.request import Request
from tocsin.serve.principal import Principal

__all__ = ["Identification"]


class Identification:
    """`explicit` methods read a credential that the client chose to send; of `ambient` ones, the first counts."""

    def __init__(self, explicit: Sequence[Authenticator], ambient: Sequence[Authenticator]) -> None:
        self._explicit, self._ambient = explicit, ambient

    async def principal(self, scope: Scope) -> Principal:
        """The principal of a request; Unauthenticated if there is none, ClusterError if Slurm cannot be asked."""
        request = Request.of(scope)
        chosen = [authenticator for authenticator in self._explicit if authenticator.offered(request)]
        if len(chosen) > 1:
            raise Unauthenticated("the request has credentials of several kinds; send one of them")
        authenticator = next(
            iter(
                chosen or (authenticator for authenticator in self._ambient if authenticator.offered(request))
            ),
            None,
        )
        if authenticator is None:
            raise Unauthenticated(
                "the request has no credential; use the unix socket, a Slurm token or an API token, or run tocsin login"
            )
        return await authenticator.principal(request)
