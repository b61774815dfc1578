"""Running work for a client only as long as the client is there."""

import asyncio
from collections.abc import Coroutine

from starlette.types import Message, Receive, Scope, Send


class ClientGoneError(Exception):
    """The client has left, or does not read. Nothing can be answered."""


async def run_while_connected(receive: Receive, work: Coroutine[None, None, None]) -> None:
    """Await `work`; cancel it as soon as the client disconnects, and raise ClientGoneError.

    The request's body must have been read.
    """
    task = asyncio.ensure_future(work)
    watch = asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGoneError
        task.result()
    finally:
        task.cancel()
        watch.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] not in {"http.disconnect", "websocket.disconnect"}:
        pass


async def send_or_give_up(send: Send, message: Message, timeout_s: float) -> None:
    """Send, unless the client takes nothing for so long."""
    try:
        async with asyncio.timeout(timeout_s):
            await send(message)
    except TimeoutError:
        raise ClientGoneError from None


def break_off(scope: Scope) -> None:
    """Drop the connection at once, so that the client can tell the answer is not whole.

    Where the server does not offer it, an answer that is never completed has the same effect,
    except that a client which does not read keeps its socket.
    """
    abort = scope.get("extensions", {}).get("chattts.abort")
    if abort is not None:
        abort()
