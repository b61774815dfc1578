"""What the routes work with, built once by `create_app`, and the way they all speak."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.types import Scope

from chattts_api.api.admission import Admission
from chattts_api.api.guard.caller import Caller, caller_of
from chattts_api.api.guard.limits import RateLimits
from chattts_api.api.metrics import Account, Metrics
from chattts_api.request import NO_DEFAULTS, parse_request
from chattts_api.settings import Settings
from chattts_api.synthesis import Plan, Speech, Synthesis
from chattts_api.types import Reading, SpeechRequest
from chattts_api.voices.catalog import VoiceCatalog

LONG_TEXT: Final = 400  # characters; a longer one is read in a thread, off the event loop


@dataclass(frozen=True, slots=True, eq=False)
class Services:
    """Everything that the routes share; nothing here is owned by a route."""

    settings: Settings
    synthesis: Synthesis
    catalog: VoiceCatalog
    metrics: Metrics
    admission: Admission
    limits: RateLimits

    def parse(
        self,
        fields: Mapping[str, object],
        caller: Caller,
        request_id: str,
        defaults: Mapping[str, object] = NO_DEFAULTS,
    ) -> SpeechRequest:
        return parse_request(
            fields,
            catalog=self.catalog,
            settings=self.settings,
            request_id=request_id,
            owner=caller.owner,
            defaults=defaults,
        )

    async def plan(self, request: SpeechRequest, caller: Caller) -> Plan:
        """Charge and read a request's text, within the bound on texts being read."""
        with self.admission.reading():
            await self.limits.charge_characters(caller, len(request.input))
            if len(request.input) > LONG_TEXT:
                return await asyncio.to_thread(self.synthesis.plan, request)
            return self.synthesis.plan(request)

    async def begin(self, request: SpeechRequest, caller: Caller, account: Account) -> Speech:
        """The speech of a request, once its first sound is there."""
        plan = await self.plan(request, caller)
        speech = await self.admission.begin(self.synthesis, plan)
        account.first_audio()
        return speech


class PageAccess:
    """Tells the page, which stands behind the guard too, who is looking at it."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def owner(self, scope: Scope) -> str | None:
        return caller_of(scope).owner

    def is_admin(self, scope: Scope) -> bool:
        return caller_of(scope).is_admin

    def is_logged_in(self, scope: Scope) -> bool:
        return caller_of(scope).by_cookie

    async def begin(self, synthesis: Synthesis, plan: Plan) -> Speech:
        """Speak through the same door as the other surfaces."""
        with self._services.metrics.request("page") as account:
            speech = await self._services.admission.begin(synthesis, plan)
            account.first_audio()
            return speech

    async def charge(self, scope: Scope, num_characters: int) -> None:
        """Raises RateLimitedError, DrainingError and EngineFailedError."""
        with self._services.admission.inside(), self._services.admission.reading():
            await self._services.limits.charge_characters(caller_of(scope), num_characters)


def num_dropped(reading: Reading) -> int:
    """How many characters of the input no sound stands for: the value of `x-text-dropped`."""
    return sum(d.end - d.start for d in reading.dropped)
