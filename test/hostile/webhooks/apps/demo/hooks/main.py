"""Functions whose envelopes are hard to deliver."""


def value(value):
    """Returns its parameter."""
    return value


def large(n):
    return "x" * n


def raises():
    raise ValueError("wrong: \u2028 \U0001f680")
