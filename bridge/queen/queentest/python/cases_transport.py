"""Ways to the broker: tokens, several URLs, failover, tries."""

import asyncio
import time
from typing import Any

import httpx

from kit import Kit, Recorder, Skipped, case, item, raises, refused, same, true

# Nothing listens there.
DEAD = "http://127.0.0.1:9"


@case("transport/Token")
async def token(k: Kit) -> None:
    """A broker with a token refuses others; the client does not try again."""
    if not k.token:
        raise Skipped("this broker has no token")
    seen = Recorder()
    wrong = k.client(bearer_token="wrong", transport=seen)
    await refused("push", wrong.queue(k.name()).push(item("a")), 401, "Invalid token signature")
    same("requests", seen.statuses, [401])
    same("pop", await wrong.queue(k.name()).batch(1).wait(False).pop(), [])
    same("health is open", await wrong.admin.health(), {"status": "healthy"})
    await wrong.close()
    none = k.client(bearer_token="")
    await refused("no token", none.admin.get_overview(), 401, "Authentication required")
    await none.close()


@case("transport/Failover")
async def failover(k: Kit) -> None:
    """With several URLs, one that is dead is passed over."""
    q = await k.queue()
    for strategy in ["affinity", "round-robin", "session"]:
        client = k.client(DEAD, k.url, load_balancing_strategy=strategy)
        for n in range(4):
            same("push", await client.queue(q).push(item(f"{strategy}{n}")), [{"status": "queued"}])
        got = await client.queue(q).group(strategy).subscription_mode("all").batch(100).partitions(1).wait(False).pop()
        same("ack", await client.ack(got, True, {"group": strategy}), {"success": True})
        await client.close()
    same("stored", len(await k.pop(q)), 12)


@case("transport/AllDead")
async def all_dead(k: Kit) -> None:
    client = k.client(DEAD, DEAD + "/", retry_attempts=1)
    await raises("push", client.queue("q").push(item("a")), httpx.ConnectError)
    await client.close()


@case("transport/NoSecondTry")
async def no_second_try(k: Kit) -> None:
    """A refusal with 4xx is final."""
    seen = Recorder()
    client = k.client(transport=seen)
    began = time.monotonic()
    await refused("read", client.admin.get_queue(k.name()), 404)
    true("at once", time.monotonic() - began < 5)
    same("requests", seen.statuses, [404])
    await client.close()


@case("transport/KeepAlive")
async def keep_alive(k: Kit) -> None:
    """Connections serve many requests, those with empty answers too."""
    seen = Recorder()
    client = k.client(transport=seen)
    q = await k.queue()
    for n in range(20):
        await client.queue(q).push(item(f"m{n}"))
        await client.queue(q).partition("none").batch(1).partitions(1).wait(False).pop()
    same("statuses", seen.statuses, [201, 204] * 20)
    same("connections", len(seen._pool.connections), 1)
    await client.close()


@case("transport/Headers")
async def headers(k: Kit) -> None:
    client = k.client(headers={"X-Anything": "at all"})
    same("health", await client.admin.health(), {"status": "healthy"})
    await client.close()


@case("transport/ManyLongPolls")
async def many_long_polls(k: Kit) -> None:
    """Fifty parked pops, one message each, and nobody is left out."""
    q = await k.queue()

    async def one() -> Any:
        [m] = await k.pop(q, group="g", batch=1, wait=20.0)
        await k.done([m])
        return m["transactionId"]

    parked = [asyncio.create_task(one()) for _ in range(50)]
    await asyncio.sleep(0.3)
    for n in range(50):
        await k.queen.queue(q).partition(f"p{n % 10}").push(item(f"m{n}"))
    got = await asyncio.gather(*parked)
    same("each once", sorted(got), sorted(f"m{n}" for n in range(50)))
