"""Log lines: one JSON object, or one line for a person, an event. No secrets, no user's text."""

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final, Literal, TextIO

request_id_var: ContextVar[str | None] = ContextVar("request_id", default=None)

MAX_MESSAGE: Final = 2000
MAX_TRACE: Final = 5000
_OWN_FIELDS: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
# What uvicorn says of answers that the guard breaks off or refuses on purpose.
_EXPECTED: Final = (
    "ASGI callable returned without completing response",
    "ASGI callable returned without completing handshake",
    "Invalid HTTP request received",
)


class RequestIdFilter(logging.Filter):
    """Adds the id of the request that is being answered."""

    def filter(self, record: logging.LogRecord) -> bool:
        if not hasattr(record, "request_id"):
            record.request_id = request_id_var.get()
        return not any(record.getMessage().startswith(words) for words in _EXPECTED)


class JsonFormatter(logging.Formatter):
    """One JSON object a line; fields given in `extra` become its keys."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:MAX_MESSAGE],
        }
        line |= {
            name: value
            for name, value in record.__dict__.items()
            if name not in _OWN_FIELDS and value is not None
        }
        if record.exc_info:
            line["trace"] = _trace(record)
        return json.dumps(line, ensure_ascii=True, default=str)


class ConsoleFormatter(logging.Formatter):
    """A line for a person. Control characters are shown as escapes, so a line stays a line."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        extra = " ".join(
            f"{name}={value}"
            for name, value in record.__dict__.items()
            if name not in _OWN_FIELDS and value is not None
        )
        text = f"{when} {record.levelname.lower():7} {record.getMessage()[:MAX_MESSAGE]}"
        line = _escaped(f"{text}  {extra}" if extra else text)
        return f"{line}\n{_trace(record)}" if record.exc_info else line


def configure_logging(
    level: str = "info", style: Literal["json", "console"] = "console", out: TextIO | None = None
) -> None:
    """Send every logger's lines to `out`, standard error unless given."""
    stream = logging.StreamHandler(sys.stderr if out is None else out)
    stream.setFormatter(JsonFormatter() if style == "json" else ConsoleFormatter())
    stream.addFilter(RequestIdFilter())
    root = logging.getLogger()
    root.handlers = [stream]
    root.setLevel(level.upper())
    # uvicorn writes the addresses of sockets with their query strings at info.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("httpx", "httpcore", "urllib3", "asyncio", "gradio", "slowapi", "redis"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _trace(record: logging.LogRecord) -> str:
    """Where it was raised and of which kind; the exception's words may hold a user's text."""
    kind, error, where = record.exc_info or (None, None, None)
    if kind is None or error is None:
        return ""
    frames = "".join(traceback.format_tb(where))
    return f"{frames}{kind.__module__}.{kind.__qualname__}"[-MAX_TRACE:]


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
