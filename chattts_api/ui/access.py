"""Who is at the page, as far as the playground needs to know. The guard has let them in."""

from typing import Protocol

from starlette.types import Scope


class Access(Protocol):
    """What the guard knows of the caller of a request; injected by who mounts the page."""

    def owner(self, scope: Scope) -> str | None:
        """Whose voices and sounds are seen; None for all anonymous callers together."""

    def is_admin(self, scope: Scope) -> bool:
        """Whether the server's own figures may be shown."""

    async def charge(self, scope: Scope, num_characters: int) -> None:
        """Count characters against the caller's limit. Raises RateLimitedError."""


class OpenAccess:
    """A server without keys: everybody is the same caller and may see everything."""

    def owner(self, scope: Scope) -> str | None:  # noqa: ARG002
        return None

    def is_admin(self, scope: Scope) -> bool:  # noqa: ARG002
        return True

    async def charge(self, scope: Scope, num_characters: int) -> None:
        """Nothing is limited."""
