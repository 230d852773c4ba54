# Contract 6, `traceparent`: adds the OpenTelemetry spans of a function to its call's trace, without changes to the app.
import sys


def enter(traceparent):
    """Makes the call's trace the current trace of a run's context. Does nothing if the app has not imported OpenTelemetry."""
    if "opentelemetry" not in sys.modules:
        return
    try:
        from opentelemetry import context, propagate

        context.attach(propagate.extract({"traceparent": traceparent}))
    except Exception as error:  # a fault in the app's version of OpenTelemetry must not fail the run
        print(f"the function runs without the call's trace, because OpenTelemetry failed: {error!r}", file=sys.stderr)
