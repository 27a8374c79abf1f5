"""What the cases work with: a registry, a client, unique names, comparisons.

It leaves to run.py which cases run and how they are reported.
"""

import asyncio
import os
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict, List, Optional, Type

import httpx
from queen import Queen

# How long a case waits for something that must happen, in seconds.
PATIENCE = 10.0

# Matches anything that is there.
ANY = object()

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MICROS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
MILLIS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@dataclass(frozen=True)
class Case:
    """One thing the client does, and what its caller must see."""

    name: str
    run: Callable[["Kit"], Awaitable[None]]


CASES: List[Case] = []


def case(name: str) -> Callable[[Callable[["Kit"], Awaitable[None]]], Callable[["Kit"], Awaitable[None]]]:
    """Register a case under a name of the form topic/what."""

    def register(run: Callable[["Kit"], Awaitable[None]]) -> Callable[["Kit"], Awaitable[None]]:
        if any(c.name == name for c in CASES):
            raise ValueError(f"two cases are called {name}")
        CASES.append(Case(name, run))
        return run

    return register


class Failed(AssertionError):
    """What was seen is not what must be seen."""


class Skipped(Exception):
    """The case does not hold for this broker; the text says why."""


def one_of(*wants: Any) -> Callable[[Any], bool]:
    """Match any of several things."""
    return lambda got: any(not differences(got, want) for want in wants)


def differences(got: Any, want: Any, at: str = "") -> List[str]:
    """Tell how got differs from want.

    want may be ANY, a type, a pattern, a predicate, a dict (these members, and
    maybe more), a list (of these, and no more) or a value.
    """
    if want is ANY:
        return []
    if isinstance(want, type):
        ok = isinstance(got, want) and (want is bool or not isinstance(got, bool))
        return [] if ok else [f"{at}: {got!r} is no {want.__name__}"]
    if isinstance(want, re.Pattern):
        ok = isinstance(got, str) and want.fullmatch(got)
        return [] if ok else [f"{at}: {got!r} does not look like {want.pattern}"]
    if callable(want):
        return [] if want(got) else [f"{at}: {got!r} is not what it must be"]
    if isinstance(want, dict) and isinstance(got, dict):
        missing = [f"{at}.{k}: missing from {sorted(got)}" for k in want if k not in got]
        return missing + [d for k in want if k in got for d in differences(got[k], want[k], f"{at}.{k}")]
    if isinstance(want, list) and isinstance(got, list):
        if len(got) != len(want):
            return [f"{at}: {len(got)} of them, want {len(want)}: {got!r}"]
        return [d for i, w in enumerate(want) for d in differences(got[i], w, f"{at}[{i}]")]
    ok = type(got) is type(want) and got == want
    return [] if ok else [f"{at}: {got!r}, want {want!r}"]


def same(what: str, got: Any, want: Any) -> None:
    """Require that got is what is wanted."""
    found = differences(got, want, what)
    if found:
        raise Failed("\n".join(found))


def true(what: str, ok: Any) -> None:
    """Require a truth."""
    if not ok:
        raise Failed(what)


async def raises(what: str, doing: Awaitable[Any], kind: Type[Exception] = Exception) -> Any:
    """Require that something fails, and return how."""
    try:
        got = await doing
    except kind as error:
        return error
    raise Failed(f"{what}: no error but {got!r}")


async def refused(what: str, doing: Awaitable[Any], status: int, text: str = "") -> Any:
    """Require that the broker refuses something with a status."""
    error = await raises(what, doing, httpx.HTTPStatusError)
    same(f"{what}: status", error.response.status_code, status)
    if text not in str(error):
        raise Failed(f"{what}: {error}, want {text!r} in it")
    return error


def ids(messages: List[Dict[str, Any]]) -> List[str]:
    """The transaction ids of messages, in order."""
    return [m["transactionId"] for m in messages]


def item(id: str, **data: Any) -> Dict[str, Any]:
    """A message to push under an id."""
    return {"transactionId": id, "data": {"id": id, **data}}


class Recorder(httpx.AsyncHTTPTransport):
    """A way to the broker that remembers what went over it."""

    def __init__(self) -> None:
        super().__init__()
        self.paths: List[str] = []
        self.statuses: List[int] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        self.paths.append(request.url.path)
        self.statuses.append(response.status_code)
        return response


class Kit:
    """A broker under test and ways to reach it. All cases share one."""

    def __init__(self, url: str, token: Optional[str]) -> None:
        self.url = url
        self.token = token
        self.queen = self.client()
        self._awake: Optional["asyncio.Task[None]"] = None

    def client(self, *urls: str, **options: Any) -> Queen:
        """A client of the case's own, which the case closes."""
        options.setdefault("bearer_token", self.token)
        return Queen(list(urls) or [self.url], **options)

    def name(self, prefix: str = "q") -> str:
        """A name nobody else uses."""
        return f"py-{prefix}-{secrets.token_hex(5)}"

    async def queue(self, **options: Any) -> str:
        """A configured queue of the case's own; its lease is 30 s."""
        name = self.name()
        await self.queen.queue(name).config({"lease_time": 30, **options}).create()
        return name

    async def push(self, queue: str, *names: str, partition: str = "p") -> None:
        """Store messages with these ids; each must be queued."""
        verdicts = await self.queen.queue(queue).partition(partition).push([item(n) for n in names])
        same("push", verdicts, [{"status": "queued", "transaction_id": n} for n in names])

    def popping(self, queue: Optional[str], *, group: Optional[str] = "g", mode: Optional[str] = "all", batch: int = 100,
                partitions: int = 1, partition: Optional[str] = None, wait: float = 0.0) -> Any:
        """A pop as the cases make it: from the oldest message, all there are."""
        builder = self.queen.queue(queue).batch(batch).partitions(partitions)
        builder = builder.wait(wait > 0).timeout_millis(int(wait * 1000) or 1000)
        if group:
            builder = builder.group(group)
        if mode:
            builder = builder.subscription_mode(mode)
        if partition:
            builder = builder.partition(partition)
        return builder

    async def pop(self, queue: str, want: Optional[List[str]] = None, **how: Any) -> List[Dict[str, Any]]:
        """Pop messages, which must come, and be these."""
        messages = await self.popping(queue, **{"wait": PATIENCE, **how}).pop()
        true(f"pop of {queue}: nothing came", messages)
        if want is not None:
            same("messages popped", ids(messages), want)
        return messages

    async def none(self, queue: str, **how: Any) -> None:
        """Require that there is nothing to pop now."""
        messages = await self.popping(queue, **how).pop()
        same("messages popped, want none", ids(messages), [])

    async def done(self, messages: List[Dict[str, Any]], group: str = "g") -> None:
        """Complete messages, which must succeed."""
        same("ack", await self.queen.ack(messages, True, {"group": group}), {"success": True})

    async def pending(self, queue: str, group: str = "g") -> int:
        """How many messages a group has not consumed."""
        return (await self.queen.admin.get_queue_depth(queue, group))["pending"]

    async def eventually(self, what: str, happened: Callable[[], Awaitable[Any]], bound: float = PATIENCE) -> Any:
        """Try until something has happened, and return it."""
        end = time.monotonic() + bound
        while True:
            got = await happened()
            if got:
                return got
            if time.monotonic() > end:
                raise Failed(f"{what}: not within {bound:g} s")
            await asyncio.sleep(0.05)

    async def awake(self) -> None:
        """Wait until timers fire on time.

        An idle 1.3.0 fires up to 28 s late. A timer far in the future keeps
        its sweeper awake, but does not wake it: hence the one that is due.
        """
        if self._awake is None:
            self._awake = asyncio.create_task(self._wake())
        await asyncio.shield(self._awake)

    async def _wake(self) -> None:
        queue = self.name("awake")
        await self.queen.timers.schedule(queue, "far", 0, delay_ms=24 * 3600 * 1000, partition="p")
        await self.queen.timers.schedule(queue, "due", 0, delay_ms=0, partition="p")
        await self.pop(queue, partition="p", wait=40.0)


def kit_from_environment() -> Kit:
    """The kit for the broker at QUEEN_URL, with QUEEN_TOKEN where it is set."""
    return Kit(os.environ["QUEEN_URL"], os.environ.get("QUEEN_TOKEN"))
