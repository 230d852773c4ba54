def greet(name: str, punctuation: str = "!"):
    """Says hello."""
    return f"Hello, {name}{punctuation}"
