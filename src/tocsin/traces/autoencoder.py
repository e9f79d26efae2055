"""The convolutional autoencoder in PyTorch, for training; imported only when a model is trained."""

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from tocsin.traces.architecture import HIDDEN, KERNEL, WIDTHS, Architecture
from tocsin.traces.graph import Messages

__all__ = ["Autoencoder"]


class Block(nn.Module):
    """A convolution over time with an additive residual connection, and then a ReLU (as in He et al. 2015).

    The connection is linear, so a trained block is one convolution: `merged` (as in RepVGG, Ding et al. 2021).
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(before, after, KERNEL, padding=KERNEL // 2)
        self.shortcut = nn.Conv1d(before, after, 1)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.convolution(x) + self.shortcut(x))

    def merged(self) -> tuple[Tensor, Tensor]:
        """The weight and the bias of the one convolution that does the same."""
        side = KERNEL // 2
        shortcut = functional.pad(self.shortcut.weight, (side, side))
        assert self.convolution.bias is not None, "made with one"
        assert self.shortcut.bias is not None, "made with one"
        return self.convolution.weight + shortcut, self.convolution.bias + self.shortcut.bias


class Encoder(nn.Module):
    """Blocks with max-pooling, then a perceptron: windows × channels × seconds become embeddings."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        widths = (len(architecture.channels), *WIDTHS)
        self.padding = architecture.padded - architecture.length
        self.blocks = nn.ModuleList(Block(*pair) for pair in pairwise(widths))
        self.hidden = nn.Linear(WIDTHS[-1] * architecture.steps, HIDDEN)
        self.embedding = nn.Linear(HIDDEN, architecture.embedding)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.pad(x, (0, self.padding), mode="replicate")
        for block in self.blocks:
            x = functional.max_pool1d(block(x), 2)
        embedding: Tensor = self.embedding(functional.relu(self.hidden(x.flatten(1))))
        return embedding


class Decoder(nn.Module):
    """The mirror of the encoder, with up-sampling; rates of a CPU leave it through a softmax over the channels."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        widths = (*WIDTHS[::-1], WIDTHS[0])
        self.length, self.shares = architecture.length, architecture.shares
        self.start = (WIDTHS[-1], architecture.steps)
        self.hidden = nn.Linear(architecture.embedding, HIDDEN)
        self.flat = nn.Linear(HIDDEN, WIDTHS[-1] * architecture.steps)
        self.blocks = nn.ModuleList(Block(*pair) for pair in pairwise(widths))
        self.out = nn.Conv1d(WIDTHS[0], len(architecture.outputs), 1)

    def forward(self, z: Tensor) -> Tensor:
        x = functional.relu(self.flat(functional.relu(self.hidden(z)))).view(-1, *self.start)
        for block in self.blocks:
            x = block(functional.interpolate(x, scale_factor=2, mode="nearest"))
        x = self.out(x)[..., : self.length]
        return functional.softmax(x, dim=1) if self.shares else x


class Autoencoder(nn.Module):
    """All three architectures: the encoder, for graphs one message pass, and the decoder."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.shares = architecture.shares
        self.encoder = Encoder(architecture)
        self.messages = Messages(architecture.embedding) if architecture.graph else None
        self.decoder = Decoder(architecture)

    def forward(self, windows: Tensor, *graphs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Errors (windows × outputs), embeddings and reconstructions (windows × outputs × seconds)."""
        x = windows.transpose(1, 2)
        z = self.encoder(x)
        if self.messages is not None:
            z = self.messages(z, *graphs)
        reconstruction = self.decoder(z)
        target = torch.cat([x, 1 - x.sum(dim=1, keepdim=True)], dim=1) if self.shares else x
        return (reconstruction - target).square().mean(dim=2), z, reconstruction

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Those of the trained model, as `Architecture.parameters` names them."""
        found = {name: values for name, values in self.state_dict().items() if ".blocks." not in name}
        for part in ("encoder", "decoder"):
            for number, block in enumerate(getattr(self, part).blocks):
                name = f"{part}.blocks.{number}"
                found[f"{name}.weight"], found[f"{name}.bias"] = block.merged()
        return {name: values.detach().numpy().astype(np.float32) for name, values in found.items()}
