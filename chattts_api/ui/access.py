"""What the page may do for whom; the guard in front has let them in."""

from typing import Protocol

from starlette.types import Scope

from chattts_api.synthesis import Plan, Speech, Synthesis


class Access(Protocol):
    """What the guard knows of the caller of a request; injected by who mounts the page."""

    def owner(self, scope: Scope) -> str | None:
        """Whose voices and sounds are seen; None for all anonymous callers together."""

    def is_admin(self, scope: Scope) -> bool:
        """Whether the server's own figures may be shown."""

    def is_logged_in(self, scope: Scope) -> bool:
        """Whether a cookie let the visitor in, so that there is something to log out of."""

    async def charge(self, scope: Scope, num_characters: int) -> None:
        """Count characters against the caller's limit. Raises RateLimitedError."""

    async def begin(self, synthesis: Synthesis, plan: Plan) -> Speech:
        """Speak a plan through the server's own door; returns at its first sound."""


class OpenAccess:
    """A server without keys: everybody is the same caller and may see everything."""

    def owner(self, scope: Scope) -> str | None:  # noqa: ARG002
        return None

    def is_admin(self, scope: Scope) -> bool:  # noqa: ARG002
        return True

    def is_logged_in(self, scope: Scope) -> bool:  # noqa: ARG002
        return False

    async def charge(self, scope: Scope, num_characters: int) -> None:
        """Nothing is limited."""

    async def begin(self, synthesis: Synthesis, plan: Plan) -> Speech:
        return await synthesis.speak(plan)
