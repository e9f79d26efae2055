"""Messages between the CPUs of a node or of a job in PyTorch, for training."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tocsin.traces.architecture import HIDDEN, PAIR

__all__ = ["Messages"]


class Messages(nn.Module):
    """One message pass on a complete graph: z_i' = f(z_i, Σ_j α_ij z_j), α_ij from a network of (z_i, z_j).

    A graph is complete, so one pass reaches every CPU (paper, section 3.2). α_ij is a sigmoid divided by the number of
    neighbours: one model serves graphs of any size, and a CPU can ignore its neighbours.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        # A layer on (z_i, z_j) is the sum of a layer on each: computed once per CPU, not once per pair.
        self.own = nn.Linear(size, PAIR)
        self.neighbour = nn.Linear(size, PAIR)
        self.weight = nn.Linear(PAIR, 1)
        self.hidden = nn.Linear(2 * size, HIDDEN)
        self.update = nn.Linear(HIDDEN, size)

    def forward(self, z: Tensor, slots: Tensor, neighbours: Tensor, places: Tensor) -> Tensor:
        """`slots`, `neighbours` and `places` are those of `batches.PaddedGraphs`."""
        padded = z[slots]
        pairs = functional.relu(self.own(padded).unsqueeze(2) + self.neighbour(padded).unsqueeze(1))
        weights = torch.sigmoid(self.weight(pairs).squeeze(3)) * neighbours
        received = (weights @ padded).flatten(0, 1)[places]
        update: Tensor = self.update(functional.relu(self.hidden(torch.cat([z, received], dim=1))))
        return z + update
