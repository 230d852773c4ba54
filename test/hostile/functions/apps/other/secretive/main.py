"""An app of another project that the same worker serves."""

KEY = "between us"


def value():
    return len(KEY)
