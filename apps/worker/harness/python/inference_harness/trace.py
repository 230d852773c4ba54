# Contract 6, `traceparent`: adds the OpenTelemetry spans of a function to its call's trace,
# without changes to the app.
import importlib
import sys
from typing import Any


def enter(traceparent: str) -> None:
    """Makes the call's trace the current trace of a run's context.

    Does nothing if the app has not imported OpenTelemetry."""
    if "opentelemetry" not in sys.modules:
        return
    try:
        context: Any = importlib.import_module("opentelemetry.context")
        propagate: Any = importlib.import_module("opentelemetry.propagate")
        context.attach(propagate.extract({"traceparent": traceparent}))
    except (
        Exception
    ) as error:  # a fault in the app's version of OpenTelemetry must not fail the run
        message = "the function runs without the call's trace, because OpenTelemetry failed"
        print(f"{message}: {error!r}", file=sys.stderr)
