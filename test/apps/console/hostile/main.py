"""Functions whose names, items, lines and errors contain markup."""

MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def items():
    """<b onmouseover="document.title='owned'">Yields</b> markup."""
    print(MARKUP)
    yield MARKUP
    yield {MARKUP: MARKUP}


def value(text: str = MARKUP) -> dict:
    return {MARKUP: [text]}


def fails():
    raise ValueError(MARKUP)
