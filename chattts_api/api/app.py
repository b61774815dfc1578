"""Puts the routes together behind the guard. Starts and stops nothing that the caller owns."""

from collections.abc import Callable
from pathlib import Path

from fastapi import APIRouter, FastAPI
from prometheus_client import CollectorRegistry
from starlette.responses import RedirectResponse, Response
from starlette.websockets import WebSocket

from chattts_api import __version__
from chattts_api.api.admission import Admission
from chattts_api.api.catalog import catalog_routes
from chattts_api.api.classic import classic_routes
from chattts_api.api.downloads import DownloadShelf
from chattts_api.api.engine_metrics import EngineCollector, metrics_routes
from chattts_api.api.errors import install_error_answers
from chattts_api.api.guard.addresses import Proxies, is_loopback, parse_networks
from chattts_api.api.guard.caller import Limits
from chattts_api.api.guard.cookie import CookieSigner, load_secret
from chattts_api.api.guard.credentials import Authenticator
from chattts_api.api.guard.keys import KeyRing
from chattts_api.api.guard.layer import Guard, GuardParts
from chattts_api.api.guard.limits import RateLimits
from chattts_api.api.guard.login import login_routes
from chattts_api.api.guard.origins import Origins
from chattts_api.api.guard.policy import Policy
from chattts_api.api.health import health_routes
from chattts_api.api.metrics import Metrics
from chattts_api.api.openapi import install_openapi
from chattts_api.api.services import Services
from chattts_api.api.speech import speech_routes
from chattts_api.api.stream_socket import serve_stream_socket
from chattts_api.api.text import text_routes
from chattts_api.api.tts_socket import serve_tts_socket
from chattts_api.errors import SetupError
from chattts_api.settings import Settings
from chattts_api.synthesis import Synthesis
from chattts_api.voices.catalog import VoiceCatalog

ANONYMOUS_REQUESTS = 10  # a minute, where nobody needs a key on a public address
KEY_REQUESTS = 60

MountUi = Callable[[FastAPI, Services], None]


class Server:
    """The ASGI application, with what its owner needs to end it well."""

    def __init__(self, guard: Guard, services: Services, shelf: DownloadShelf) -> None:
        self.guard = guard
        self.services = services
        self._shelf = shelf

    @property
    def admission(self) -> Admission:
        return self.services.admission

    async def close(self) -> None:
        """Give back what the application opened itself: connections to Redis, files."""
        await self.services.limits.close()
        self._shelf.close()


def create_app(
    settings: Settings,
    synthesis: Synthesis,
    catalog: VoiceCatalog,
    *,
    mount_ui: MountUi | None = None,
    registry: CollectorRegistry | None = None,
) -> Server:
    """Build the application.

    Args:
        mount_ui: mounts the page on the application at /ui; it stands behind the guard too.
        registry: where the metrics go; a fresh one unless given.

    Raises:
        SetupError: the key file cannot be used, or a public address would be open to all.
    """
    metrics = Metrics(CollectorRegistry() if registry is None else registry)
    limits = RateLimits(
        settings.rate_storage, on_state=lambda is_up: metrics.limiter_up.set(int(is_up))
    )
    services = Services(
        settings=settings,
        synthesis=synthesis,
        catalog=catalog,
        metrics=metrics,
        admission=Admission(max_requests=settings.max_queue),
        limits=limits,
    )
    metrics.registry.register(EngineCollector(synthesis.engine.stats))
    shelf = DownloadShelf()
    parts = _guard_parts(settings, limits)
    app = FastAPI(title="ChatTTS", version=__version__, redirect_slashes=False)
    install_error_answers(app)
    install_openapi(app)
    app.include_router(speech_routes(services))
    app.include_router(catalog_routes(services))
    app.include_router(health_routes(services))
    app.include_router(metrics_routes(metrics.registry))
    app.include_router(classic_routes(services, shelf))
    app.include_router(text_routes(services))
    app.include_router(socket_routes(services))
    app.include_router(login_routes(parts.authenticator, limits, parts.origins))
    if mount_ui is not None:
        app.add_api_route("/", _to_page, methods=["GET"], include_in_schema=False)
        mount_ui(app, services)
    return Server(Guard(app, parts), services, shelf)


def socket_routes(services: Services) -> APIRouter:
    router = APIRouter()

    async def tts_socket(websocket: WebSocket) -> None:
        await serve_tts_socket(services, websocket)

    async def stream_socket(websocket: WebSocket) -> None:
        await serve_stream_socket(services, websocket)

    router.add_api_websocket_route("/ws/tts", tts_socket)
    for prefix in ("/v1", ""):
        router.add_api_websocket_route(f"{prefix}/audio/speech/stream", stream_socket)
    return router


async def _to_page() -> Response:
    return RedirectResponse("/ui/", status_code=307)


def _guard_parts(settings: Settings, limits: RateLimits) -> GuardParts:
    keys = KeyRing(
        [key.get_secret_value() for key in settings.api_keys],
        Path(settings.api_keys_file) if settings.api_keys_file else None,
    )
    is_local = is_loopback(settings.host)
    if not (is_local or keys.is_required or settings.allow_anonymous):
        raise SetupError(
            "CHATTTS_HOST: an address that others can reach needs keys. Set CHATTTS_API_KEYS or "
            "CHATTTS_API_KEYS_FILE, or CHATTTS_ALLOW_ANONYMOUS=1 to let everybody in."
        )
    is_alone = is_local and not keys.is_required
    anonymous = None if is_alone else ANONYMOUS_REQUESTS
    secret = load_secret(Path(settings.data_dir) / "login.secret" if keys.is_required else None)
    authenticator = Authenticator(
        keys=keys,
        cookies=CookieSigner(secret, keys),
        anonymous=Limits(
            requests=settings.rate_limit or anonymous, characters=settings.character_limit
        ),
        keyed=Limits(
            requests=settings.rate_limit or KEY_REQUESTS, characters=settings.character_limit
        ),
    )
    return GuardParts(
        authenticator=authenticator,
        limits=limits,
        origins=Origins(settings.cors_origins),
        proxies=Proxies(parse_networks(settings.trusted_proxies)),
        policy=Policy(settings.max_input, settings.public_catalog),
        is_private=is_alone and not settings.allow_anonymous,
    )
