"""The app of a project beside `demo`, for benchmarks with two projects."""


def echo(i: int = 0) -> int:
    return i
