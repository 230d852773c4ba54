"""An app that cannot be imported."""

print("about to import")
import nothing_of_that_name  # noqa: E402, F401
