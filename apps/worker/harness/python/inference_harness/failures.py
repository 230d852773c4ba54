# Contract 2, `function_error`, `invalid_input` and the like: an exception as the fields of an `error` message.
import sys
import traceback

from .output import OutputError

TEXT_LIMIT = 16 * 1024

# The frames of this package say nothing to an app's author.
_OURS = __file__.rsplit("/", 1)[0]


class Refused(Exception):
    """A call that never reaches the function: unknown, or called with wrong arguments."""

    def __init__(self, code, message, details=None):
        super().__init__(message)
        self.code = code
        self.details = details


def error_fields(error, debug):
    """`code`, `message`, and `type`, `details`, `traceback` where they apply. A function's traceback is also printed, into the run's log."""
    if isinstance(error, Refused):
        fields = {"code": error.code, "message": str(error)}
        if error.details is not None:
            fields["details"] = error.details
        return fields
    if isinstance(error, OutputError):
        print(f"{error.code}: {error}", file=sys.stderr)
        return {"code": error.code, "message": str(error)}
    text = formatted(error)
    sys.stderr.write(text)
    fields = {"code": "function_error", "type": type(error).__name__, "message": message_of(error)}
    if debug:
        fields["traceback"] = text
    return fields


def message_of(error):
    try:
        return str(error)[:TEXT_LIMIT]
    except Exception:
        return "(the exception has no text)"


def formatted(error):
    """The traceback, from the app's first frame on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except Exception:
        text = f"{type(error).__name__}: {message_of(error)}\n"
    return text[-TEXT_LIMIT:]
