"""An app that cannot be imported."""

import nothing_of_that_name  # noqa: F401


def run():
    return "never"
