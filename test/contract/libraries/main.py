"""Results and exceptions of libraries: numpy, a stand-in of torch, FastAPI and Starlette."""

import fastapi
import numpy
import starlette.exceptions
import torch

VALUES = {
    "integer": numpy.int64(7),
    "unsigned": numpy.uint8(255),
    "float": numpy.float32(0.5),
    "double": numpy.float64(0.1),
    "long double": numpy.longdouble(0.5),
    "boolean": numpy.bool_(True),
    "text": numpy.str_("é"),
    "time": numpy.datetime64("2026-11-21T04:05:06", "s"),
    "array": numpy.arange(4).reshape(2, 2),
    "empty": numpy.zeros((0, 2)),
    "no dimension": numpy.array(3),
    "texts": numpy.array(["a", "b"]),
    "times": numpy.array(["2026-11-21"], dtype="datetime64[D]"),
    "nan": numpy.float64("nan"),
    "nan inside": numpy.array([1.0, float("inf")]),
    "complex": numpy.complex128(1j),
    "objects": numpy.array([{1: 2}, None], dtype=object),
    "tensor": torch.Tensor([[1.5, 2.0]]),
    "tensor scalar": torch.Tensor(2),
}


def value(name: str):
    return {"value": VALUES[name]}


def items():
    yield numpy.float32(0.5)
    yield numpy.arange(2)
    yield torch.Tensor([1])


def keys():
    return {numpy.int64(7): 1, numpy.str_("a"): 2}


def fails(library: str, status: int, detail=None, headers: dict[str, str] | None = None):
    kind = fastapi.HTTPException if library == "fastapi" else starlette.exceptions.HTTPException
    raise kind(status, detail, headers)
