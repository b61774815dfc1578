"""What every tab of the playground works with, and who is at it."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import gradio as gr
from starlette.types import Scope

from chattts_api.errors import ChatTTSError, SpeechError
from chattts_api.request import DEFAULTS, parse_request
from chattts_api.synthesis import Plan, Speech, Synthesis
from chattts_api.types import EngineStats, SpeechRequest
from chattts_api.ui.access import Access
from chattts_api.ui.exports import ExportFolder
from chattts_api.ui.language import UiLanguage, language_of
from chattts_api.ui.sounds import SoundShelf
from chattts_api.ui.words import has_word, say
from chattts_api.voices.catalog import VoiceCatalog


class StudioSettings(Protocol):
    """The settings, as far as the page needs them."""

    @property
    def max_input(self) -> int: ...
    @property
    def strict_models(self) -> bool: ...
    @property
    def max_queue(self) -> int: ...
    @property
    def lang(self) -> str: ...


@dataclass(frozen=True, slots=True, eq=False)
class Visitor:
    """Who an event comes from; made anew for each event, kept nowhere."""

    scope: Scope
    owner: str | None
    language: UiLanguage

    def say(self, key: str, **values: object) -> str:
        return say(self.language, key, **values)

    def explain(self, error: ChatTTSError) -> str:
        """What to tell the visitor, in their language where the page knows the error."""
        if isinstance(error, SpeechError):
            key = f"error_{error.code}"
            return self.say(key) if has_word(key) else error.message
        return self.say("error_internal")


@dataclass(frozen=True, slots=True, eq=False)
class Studio:
    """The playground's share of the server."""

    settings: StudioSettings
    synthesis: Synthesis
    catalog: VoiceCatalog
    access: Access
    shelf: SoundShelf
    exports: ExportFolder

    def visitor(self, request: gr.Request) -> Visitor:
        assert request.request is not None
        scope = request.request.scope
        language = language_of(scope, self.settings.lang)
        return Visitor(scope, self.access.owner(scope), language)

    def parse(self, fields: Mapping[str, object], visitor: Visitor) -> SpeechRequest:
        return parse_request(
            fields,
            catalog=self.catalog,
            settings=self.settings,
            request_id=f"ui-{secrets.token_hex(8)}",
            owner=visitor.owner,
            defaults=DEFAULTS,
        )

    async def plan(self, fields: Mapping[str, object], visitor: Visitor) -> Plan:
        """A request that the visitor may make, charged and read."""
        request = self.parse(fields, visitor)
        await self.access.charge(visitor.scope, len(request.input))
        return self.synthesis.plan(request)

    async def begin(self, plan: Plan) -> Speech:
        return await self.access.begin(self.synthesis, plan)

    def stats(self) -> EngineStats:
        return self.synthesis.engine.stats()
