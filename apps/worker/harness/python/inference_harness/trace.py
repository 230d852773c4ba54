# Contract 6, `traceparent`: what a function traces with OpenTelemetry belongs to its call's trace, without a word of the app's.
import sys


def enter(traceparent):
    """In a run's context: the call's trace becomes the current one. Does nothing for an app that has not imported OpenTelemetry."""
    if "opentelemetry" not in sys.modules:
        return
    try:
        from opentelemetry import context, propagate

        context.attach(propagate.extract({"traceparent": traceparent}))
    except Exception as error:  # a version that is not ours to mend must not cost the run
        print(f"the call's trace could not be entered: {error!r}", file=sys.stderr)
