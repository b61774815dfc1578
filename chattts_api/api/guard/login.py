"""The login page: a key is typed once and a cookie stands for it."""

import html
from http.cookies import SimpleCookie
from typing import Final
from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from chattts_api.api.guard.answering import Answer
from chattts_api.api.guard.cookie import COOKIE_NAME, LIFETIME_S
from chattts_api.api.guard.credentials import Authenticator, WrongKeyError
from chattts_api.api.guard.limits import RateLimits
from chattts_api.api.guard.origins import Origins
from chattts_api.errors import ForbiddenError, InvalidRequestError

HOME: Final = "/ui/"
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>ChatTTS</title><style>
body{{font:16px system-ui,sans-serif;display:grid;place-items:center;min-height:90vh;margin:0}}
form{{display:grid;gap:.8rem;width:min(22rem,90vw)}}
input,button{{font:inherit;padding:.6rem;border-radius:.4rem;border:1px solid #999}}
button{{background:#2563eb;color:#fff;border:0}}p{{margin:0;color:#b91c1c}}
</style></head><body><form method="post" action="/login">
<label for="key">Key · 密钥</label>
<input id="key" name="key" type="password" autocomplete="current-password" required autofocus>
<input type="hidden" name="next" value="{next}">
<p role="alert">{notice}</p><button>Log in · 登录</button></form></body></html>
"""
_CSP: Final = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'"


def login_page(next_path: str = HOME, notice: str = "") -> str:
    return _PAGE.format(next=html.escape(_own_path(next_path)), notice=html.escape(notice))


def wants_page(scope: Scope, headers: Headers) -> bool:
    """Whether a person's browser asks, to whom a form says more than an error."""
    is_get = scope["type"] == "http" and scope["method"] == "GET"
    return is_get and "text/html" in headers.get("accept", "")


async def login_answer(answer: Answer, path: str) -> None:
    """Refuse with the form as the body."""
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"www-authenticate", b"Bearer"),
        (b"cache-control", b"no-store"),
        (b"content-security-policy", _CSP.encode()),
    ]
    await answer.reply(401, login_page(path).encode(), headers)


def login_routes(authenticator: Authenticator, limits: RateLimits, origins: Origins) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    async def show(request: Request) -> Response:
        return _form(request.query_params.get("next", HOME), 200)

    async def log_in(request: Request) -> Response:
        _check_own_page(request, origins)
        fields = parse_qs(_text(await request.body()), max_num_fields=8)
        next_path = fields.get("next", [HOME])[0]
        try:
            cookie = authenticator.login(fields.get("key", [""])[0].strip())
        except WrongKeyError:
            limits.charge_wrong_key(request.state.address)
            return _form(next_path, 401, "This key is not valid · 密钥无效")
        response = RedirectResponse(_own_path(next_path), status_code=303)
        _set_cookie(response, cookie, LIFETIME_S, is_secure=request.state.is_secure)
        return response

    async def log_out(request: Request) -> Response:
        _check_own_page(request, origins)
        response = RedirectResponse("/login", status_code=303)
        _set_cookie(response, "", 0, is_secure=request.state.is_secure)
        return response

    async def log_in_or_show(request: Request) -> Response:
        return await (log_in(request) if request.method == "POST" else show(request))

    router.add_api_route("/login", log_in_or_show, methods=["GET", "POST"])
    router.add_api_route("/logout", log_out, methods=["POST"])
    return router


def _check_own_page(request: Request, origins: Origins) -> None:
    if not origins.is_allowed(request.headers):
        raise ForbiddenError("Another site's page may not log anybody in or out.")


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise InvalidRequestError("The form is not UTF-8.") from None


def _form(next_path: str, status: int, notice: str = "") -> Response:
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": _CSP}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return HTMLResponse(login_page(next_path, notice), status_code=status, headers=headers)


def _set_cookie(response: Response, value: str, max_age_s: int, *, is_secure: bool) -> None:
    cookie: SimpleCookie = SimpleCookie({COOKIE_NAME: value})
    morsel = cookie[COOKIE_NAME]
    morsel.update({"samesite": "Lax", "path": "/", "max-age": str(max_age_s)})
    morsel["httponly"] = True
    morsel["secure"] = is_secure
    response.headers.append("set-cookie", morsel.OutputString())


def _own_path(path: str) -> str:
    """A path on this server, whatever was asked for."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if is_own else HOME
