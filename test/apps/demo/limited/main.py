"""Functions that exceed the limits of app.toml."""


def large(n):
    return "x" * n


def many(n):
    for _ in range(n):
        yield "x" * 100


async def no_json_async():
    yield "fine"
    yield {1j}
