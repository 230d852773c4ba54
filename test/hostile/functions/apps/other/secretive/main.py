"""Another project's, in the same worker."""

KEY = "between us"


def value():
    return len(KEY)
