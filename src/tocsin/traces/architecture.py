"""The shape of an autoencoder, on which training, export and loading must agree."""

from dataclasses import dataclass
from itertools import pairwise

from tocsin.core.channels import CPU_CHANNELS, MODES
from tocsin.core.errors import ModelError

__all__ = ["ARCHITECTURES", "BLOCKS", "KERNEL", "PAIR", "WIDTHS", "Architecture"]

ARCHITECTURES = ("vanilla", "node_graph", "job_graph")
WIDTHS = (16, 32, 32)
"""Channels after each block of the encoder; multiples of 16, the width of a vector register."""
BLOCKS = len(WIDTHS)
KERNEL = 3
HIDDEN = 64
PAIR = 16
"""Hidden units of the network that weights a pair of CPUs."""
_FACTOR = 1 << BLOCKS  # each block halves the time axis
_LONGEST, _MOST_CHANNELS, _WIDEST_EMBEDDING = 10_000, 256, 256


@dataclass(frozen=True, slots=True)
class Architecture:
    """One of the paper's three autoencoders (section 3) for windows of some length and channels.

    The rates of a CPU sum to one: `other` is not an input but an output, through a softmax. Other channels have units:
    the same channels are the output, without a softmax.
    """

    name: str
    length: int
    channels: tuple[str, ...]
    embedding: int = 16

    def __post_init__(self) -> None:
        if self.name not in ARCHITECTURES:
            raise ModelError(
                f'unknown architecture "{self.name}"; the architectures are {", ".join(ARCHITECTURES[:-1])} and {ARCHITECTURES[-1]}'
            )
        if not 1 <= self.length <= _LONGEST:
            raise ModelError(f"a window has {self.length} seconds; it must have 1 to {_LONGEST:,}")
        if not 1 <= len(self.channels) <= _MOST_CHANNELS or len(set(self.channels)) != len(self.channels):
            raise ModelError(
                f"{len(self.channels)} channels; there must be 1 to {_MOST_CHANNELS}, all different"
            )
        if not 1 <= self.embedding <= _WIDEST_EMBEDDING:
            raise ModelError(
                f"an embedding has {self.embedding} values; it must have 1 to {_WIDEST_EMBEDDING}"
            )

    @property
    def shares(self) -> bool:
        """Whether the channels and `other` sum to one."""
        return self.channels == CPU_CHANNELS

    @property
    def outputs(self) -> tuple[str, ...]:
        return MODES if self.shares else self.channels

    @property
    def graph(self) -> bool:
        """Whether windows of one instant exchange messages."""
        return self.name != "vanilla"

    @property
    def steps(self) -> int:
        """Points on the time axis after the last block; the window is padded to a multiple of eight."""
        return -(-self.length // _FACTOR)

    @property
    def padded(self) -> int:
        return self.steps * _FACTOR

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array of weights of a trained model, by its name."""
        found: dict[str, tuple[int, ...]] = {}

        def layer(name: str, *shape: int) -> None:
            found[f"{name}.weight"] = shape
            found[f"{name}.bias"] = shape[:1]

        def blocks(part: str, widths: tuple[int, ...]) -> None:
            for number, (before, after) in enumerate(pairwise(widths)):
                layer(f"{part}.blocks.{number}", after, before, KERNEL)

        flat, size = WIDTHS[-1] * self.steps, self.embedding
        blocks("encoder", (len(self.channels), *WIDTHS))
        layer("encoder.hidden", HIDDEN, flat)
        layer("encoder.embedding", size, HIDDEN)
        if self.graph:
            layer("messages.own", PAIR, size)
            layer("messages.neighbour", PAIR, size)
            layer("messages.weight", 1, PAIR)
            layer("messages.hidden", HIDDEN, 2 * size)
            layer("messages.update", size, HIDDEN)
        layer("decoder.hidden", HIDDEN, size)
        layer("decoder.flat", flat, HIDDEN)
        blocks("decoder", (*WIDTHS[::-1], WIDTHS[0]))
        layer("decoder.out", len(self.outputs), WIDTHS[0], 1)
        return found
