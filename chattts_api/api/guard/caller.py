"""Who is calling: a key's holder, or somebody at an address."""

from dataclasses import dataclass

from starlette.types import Scope

STATE_KEY = "caller"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a caller may use a minute, and at once. None: no limit."""

    requests: int | None = None
    characters: int | None = None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """One authenticated, or anonymous, caller.

    Attributes:
        bucket: under which the rate limits count; a key's fingerprint, or an address.
        owner: whose voices are seen; None for all anonymous callers together.
        is_admin: may do what concerns everybody.
        by_cookie: known by a login cookie, which a browser sends whoever asks it to.
    """

    bucket: str
    limits: Limits = Limits()
    owner: str | None = None
    is_admin: bool = False
    by_cookie: bool = False


def caller_of(scope: Scope) -> Caller:
    """The caller that the guard has let in."""
    caller = scope["state"][STATE_KEY]
    assert isinstance(caller, Caller)
    return caller


def request_id_of(scope: Scope) -> str:
    """The id that the guard has given this request."""
    return str(scope["state"]["request_id"])
