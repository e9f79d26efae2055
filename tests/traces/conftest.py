"""What tests of trace models need."""

import importlib.util

import pytest

from tests.conftest import unavailable


@pytest.fixture(scope="session")
def torch() -> None:
    """PyTorch, ONNX and ONNX Runtime: the extra `traces`."""
    for library in ("torch", "onnx", "onnxruntime"):
        if importlib.util.find_spec(library) is None:
            unavailable(f"{library} is not installed; pip install 'tocsin[traces]'")
