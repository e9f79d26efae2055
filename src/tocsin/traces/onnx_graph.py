"""An autoencoder as an ONNX graph of standard operators, built from its architecture and weights.

It is built here rather than traced from PyTorch: convolutions over time are written with a height of one, because
ONNX Runtime has its fast blocked layout for images only, and a file can be compared with the one graph it may hold.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.traces.architecture import BLOCKS, KERNEL, WIDTHS, Architecture

__all__ = ["INPUTS", "OUTPUTS", "build_graph", "read_weights"]

Weights = Mapping[str, NDArray[np.float32]]

INPUTS = ("windows", "slots", "neighbours", "places")
"""Windows × seconds × channels, and for graphs the arrays of `batches.PaddedGraphs`."""
OUTPUTS = ("errors", "embedding", "reconstruction")
"""Windows × outputs, windows × embedding, windows × outputs × seconds."""
_OPSET = 18
_IR = 10


def import_onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise ModelError(
            "models of traces need ONNX; install it with: pip install 'tocsin[traces]'"
        ) from None
    return onnx


def build_graph(architecture: Architecture, weights: Weights) -> Any:
    """The `onnx.ModelProto`; the number of windows is variable."""
    return _Builder(architecture, weights).model()


def read_weights(architecture: Architecture, content: bytes, name: str) -> dict[str, NDArray[np.float32]]:
    """The weights in a file that holds exactly the graph of this architecture; anything else is a ModelError."""
    onnx = import_onnx()
    try:
        found = onnx.ModelProto.FromString(content)
    except Exception as error:  # protobuf raises its own DecodeError
        raise ModelError(f"{name} is not an ONNX model: {str(error)[:200]}; train again") from None
    arrays = {tensor.name: tensor for tensor in found.graph.initializer}
    weights = {}
    for key, shape in architecture.parameters().items():
        tensor, stored = arrays.get(key), _stored(shape)
        if (
            tensor is None
            or tensor.data_type != onnx.TensorProto.FLOAT
            or tuple(tensor.dims) != stored
            or len(tensor.raw_data) != 4 * int(np.prod(stored))
        ):
            raise ModelError(f"{name} has no weights {key} of shape {stored}; train again")
        values = np.frombuffer(tensor.raw_data, dtype="<f4").reshape(shape)
        if not np.isfinite(values).all():
            raise ModelError(f"{name} has weights {key} that are not finite; train again")
        weights[key] = values
    if build_graph(architecture, weights) != found:
        raise ModelError(
            f"{name} does not hold the graph of a {architecture.name} autoencoder of tocsin; train again"
        )
    return weights


def _stored(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Convolutions have a height of one."""
    return (*shape[:2], 1, shape[2]) if len(shape) == 3 else shape


class _Builder:
    """Nodes and constants in the order in which they are added."""

    def __init__(self, architecture: Architecture, weights: Weights) -> None:
        self.onnx = import_onnx()
        self.architecture = architecture
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}
        for key, shape in architecture.parameters().items():
            values = np.ascontiguousarray(weights[key], dtype="<f4")
            if values.shape != shape:
                raise ModelError(f"weights {key} have the shape {values.shape}, not {shape}")
            self.constants[key] = values.reshape(_stored(shape))

    def model(self) -> Any:
        plan, helper = self.architecture, self.onnx.helper
        x = self.add("Transpose", "windows", perm=[0, 2, 1])
        z = self.encoder(x, output=None if plan.graph else "embedding")
        z = self.messages(z, output="embedding") if plan.graph else z
        off = self.add("Sub", self.decoder(z, output="reconstruction"), self.target(x))
        self.add("ReduceMean", self.add("Mul", off, off), self.integers(2), output="errors", keepdims=0)
        graph = helper.make_graph(
            self.nodes,
            f"tocsin-{plan.name}",
            self.values(self.inputs()),
            self.values(
                {
                    "errors": ("windows", len(plan.outputs)),
                    "embedding": ("windows", plan.embedding),
                    "reconstruction": ("windows", len(plan.outputs), plan.length),
                }
            ),
            [self.onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)

    def inputs(self) -> dict[str, tuple[int | str, ...]]:
        found: dict[str, tuple[int | str, ...]] = {
            "windows": ("windows", self.architecture.length, len(self.architecture.channels))
        }
        if self.architecture.graph:
            found |= {
                "slots": ("graphs", "size"),
                "neighbours": ("graphs", "size", "size"),
                "places": ("windows",),
            }
        return found

    def values(self, shapes: Mapping[str, tuple[int | str, ...]]) -> list[Any]:
        kinds = self.onnx.TensorProto
        return [
            self.onnx.helper.make_tensor_value_info(
                name, kinds.INT64 if name in ("slots", "places") else kinds.FLOAT, shape
            )
            for name, shape in shapes.items()
        ]

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def integers(self, *numbers: int) -> str:
        name = "integers_" + "_".join(map(str, numbers)).replace("-", "m")
        self.constants[name] = np.array(numbers, dtype=np.int64)
        return name

    def encoder(self, x: str, *, output: str | None) -> str:
        extra = self.architecture.padded - self.architecture.length
        x = self.add("Pad", x, self.integers(0, 0, 0, 0, 0, extra), mode="edge") if extra else x
        x = self.add("Unsqueeze", x, self.integers(2))
        for number in range(BLOCKS):
            x = self.block(x, f"encoder.blocks.{number}")
            x = self.add("MaxPool", x, kernel_shape=[1, 2], strides=[1, 2])
        return self.perceptron(self.add("Flatten", x), "encoder.hidden", "encoder.embedding", output)

    def messages(self, z: str, *, output: str) -> str:
        padded = self.add("Gather", z, "slots")
        own = self.add("Unsqueeze", self.dense(padded, "messages.own"), self.integers(2))
        other = self.add("Unsqueeze", self.dense(padded, "messages.neighbour"), self.integers(1))
        pairs = self.dense(self.add("Relu", self.add("Add", own, other)), "messages.weight")
        weights = self.add("Sigmoid", self.add("Squeeze", pairs, self.integers(3)))
        received = self.add("MatMul", self.add("Mul", weights, "neighbours"), padded)
        flat = self.add("Reshape", received, self.integers(-1, self.architecture.embedding))
        both = self.add("Concat", z, self.add("Gather", flat, "places"), axis=1)
        update = self.perceptron(both, "messages.hidden", "messages.update")
        return self.add("Add", z, update, output=output)

    def decoder(self, z: str, *, output: str) -> str:
        plan = self.architecture
        x = self.add("Relu", self.perceptron(z, "decoder.hidden", "decoder.flat"))
        x = self.add("Reshape", x, self.integers(-1, WIDTHS[-1], 1, plan.steps))
        self.constants["twice"] = np.array([1, 1, 1, 2], dtype=np.float32)
        nearest = {
            "mode": "nearest",
            "coordinate_transformation_mode": "asymmetric",
            "nearest_mode": "floor",
        }
        for number in range(BLOCKS):
            x = self.block(self.add("Resize", x, "", "twice", **nearest), f"decoder.blocks.{number}")
        x = self.add("Squeeze", self.convolution(x, "decoder.out", 1), self.integers(2))
        last = output if not plan.shares else None
        x = self.add("Slice", x, *map(self.integers, (0, plan.length, 2)), output=last)
        return self.softmax(x, output=output) if plan.shares else x

    def softmax(self, x: str, *, output: str) -> str:
        """Over the channels. ONNX Runtime's own operator was slower over this axis."""
        channels = self.integers(1)
        powers = self.add("Exp", self.add("Sub", x, self.add("ReduceMax", x, channels, keepdims=1)))
        return self.add("Div", powers, self.add("ReduceSum", powers, channels, keepdims=1), output=output)

    def target(self, x: str) -> str:
        if not self.architecture.shares:
            return x
        self.constants["one"] = np.array(1, dtype=np.float32)
        other = self.add("Sub", "one", self.add("ReduceSum", x, self.integers(1), keepdims=1))
        return self.add("Concat", x, other, axis=1)

    def block(self, x: str, name: str) -> str:
        return self.add("Relu", self.convolution(x, name, KERNEL))

    def convolution(self, x: str, name: str, kernel: int) -> str:
        side = kernel // 2
        return self.add(
            "Conv", x, f"{name}.weight", f"{name}.bias", kernel_shape=[1, kernel], pads=[0, side, 0, side]
        )

    def perceptron(self, x: str, first: str, second: str, output: str | None = None) -> str:
        hidden = self.add("Relu", self.add("Gemm", x, f"{first}.weight", f"{first}.bias", transB=1))
        return self.add("Gemm", hidden, f"{second}.weight", f"{second}.bias", output=output, transB=1)

    def dense(self, x: str, name: str) -> str:
        """A layer on the last axis of an array of any rank."""
        turned = self.add("Transpose", f"{name}.weight", perm=[1, 0])
        return self.add("Add", self.add("MatMul", x, turned), f"{name}.bias")
