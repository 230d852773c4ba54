# Contract 2, "Errors": converts an exception to the fields of an `error` message.
from __future__ import annotations

import re
import sys
import traceback
from typing import Any

from .output import OutputError, encode

# Fields of an `error` message.
Fields = dict[str, Any]

TEXT_LIMIT = 16 * 1024

SECONDS = re.compile(r"[0-9]{1,9}\Z", re.ASCII)
HTTP_DATE = re.compile(
    r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT\Z", re.ASCII
)

# Tracebacks leave out the frames of this package, because they do not help an app's author.
_OURS = __file__.rsplit("/", 1)[0]


class Refused(Exception):
    """Reports a call that never reaches the function: unknown, or with wrong arguments."""

    def __init__(
        self, code: str, message: str, details: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = details


def error_fields(error: BaseException, debug: bool) -> Fields:
    """Returns `code`, `message`, and `type`, `details`, `traceback` if they apply.

    Also prints a function's traceback into the run's log."""
    if isinstance(error, Refused):
        fields: Fields = {"code": error.code, "message": str(error)}
        if error.details is not None:
            fields["details"] = error.details
        return fields
    if isinstance(error, OutputError):
        print(f"{error.code}: {error}", file=sys.stderr)
        return {"code": error.code, "message": str(error)}
    text = formatted(error)
    sys.stderr.write(text)
    fields = {"code": "function_error", "type": type(error).__name__, **_message_and_status(error)}
    if debug:
        fields["traceback"] = text
    return fields


def _message_and_status(error: BaseException) -> Fields:
    """Returns the message, and the status and Retry-After of an exception with `status_code`.

    Such an exception is FastAPI's HTTPException."""
    status = _attribute(error, "status_code")
    if not isinstance(status, int) or isinstance(status, bool) or not 400 <= status <= 599:
        return {"message": message_of(error)}
    detail = _attribute(error, "detail")
    message = message_of(error) if detail is None else _text_of(detail)
    fields: Fields = {"message": message, "status": int(status)}
    if status in (429, 503):
        delay = _retry_after(_attribute(error, "headers"))
        if delay is not None:
            fields["retry_after"] = delay
    return fields


def _attribute(error: BaseException, name: str) -> Any:
    try:
        return getattr(error, name, None)
    except Exception:
        return None


def _text_of(detail: object) -> str:
    try:
        return (detail if isinstance(detail, str) else encode(detail))[:TEXT_LIMIT]
    except OutputError:
        return message_of(detail)


def _retry_after(headers: Any) -> str | None:
    """Returns whole seconds or an HTTP date (RFC 9110, section 10.2.3), else None."""
    try:
        for name, value in headers.items():
            text = str(value).strip()
            if str(name).lower() != "retry-after":
                continue
            if SECONDS.match(text) or HTTP_DATE.match(text):
                return text
    except Exception:
        pass
    return None


def message_of(error: object) -> str:
    """Returns the text of an exception."""
    try:
        return str(error)[:TEXT_LIMIT]
    except Exception:
        return "(the exception has no text)"


def formatted(error: BaseException) -> str:
    """Returns the traceback from the app's first frame on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OURS):
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except Exception:
        text = f"{type(error).__name__}: {message_of(error)}\n"
    return text[-TEXT_LIMIT:]
