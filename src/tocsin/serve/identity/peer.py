"""The other end of a connection, as the kernel reports it; no header can change it."""

from dataclasses import dataclass
from ipaddress import ip_address

from tocsin.core.errors import Unauthenticated
from tocsin.serve.identity.asgi import Scope

__all__ = ["KEY", "Peer", "peer_of"]

KEY = "tocsin.peer"
"""Where the protocol puts the peer in a request's scope."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A client by its uid on a unix socket, or by its address on TCP."""

    uid: int | None = None
    address: str | None = None
    tls: bool = False

    @property
    def loopback(self) -> bool:
        if self.address is None:
            return False
        found = ip_address(self.address.partition("%")[0])
        return (getattr(found, "ipv4_mapped", None) or found).is_loopback

    @property
    def private(self) -> bool:
        """Whether nobody on the path can read a secret."""
        return self.uid is not None or self.tls or self.loopback

    @property
    def key(self) -> str:
        """The key under which requests are counted."""
        return f"uid {self.uid}" if self.uid is not None else f"address {self.address}"


def peer_of(scope: Scope) -> Peer:
    """The peer of a request; without `PeerProtocol` there is none, and nobody is trusted."""
    found = scope.get(KEY)
    if not isinstance(found, Peer):
        raise Unauthenticated("this server does not report who is connected; start it with: tocsin serve")
    return found
