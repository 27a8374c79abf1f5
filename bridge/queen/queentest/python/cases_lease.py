"""Leases: expiry, renewal, and what takes them away.

What a case does within a lease fits into it on a busy machine too.
"""

import asyncio
import time

from kit import MICROS, Kit, case, same, true

G = {"group": "g"}
NOBODY = "01a22c2a-0000-7000-8000-000000000000"


@case("lease/Expiry")
async def expiry(k: Kit) -> None:
    """A lease that ends brings its messages back and charges no budget; a
    parked pop gets them without asking again."""
    q = await k.queue(lease_time=1, retry_limit=0)
    await k.push(q, "a", "b")
    for _ in range(3):
        [m, _] = await k.pop(q, ["a", "b"], wait=5.0)
    await asyncio.sleep(1.3)
    same("ack too late", await k.queen.ack(m, True, G), {"success": False, "error": "invalid or expired lease"})
    same("dead letters", await k.queen.queue(q).dlq().get(), {"total": 0})


@case("lease/ParkedPopWakesOnExpiry")
async def parked(k: Kit) -> None:
    q = await k.queue(lease_time=1)
    await k.push(q, "a")
    began = time.monotonic()
    await k.pop(q, ["a"])
    await k.pop(q, ["a"], wait=20.0)
    true("woken by the expiry", 0.9 < time.monotonic() - began < 10)


@case("lease/Renew")
async def renew(k: Kit) -> None:
    """The client sends no body, which means 60 seconds."""
    q = await k.queue(lease_time=4)
    await k.push(q, "a")
    [m] = await k.pop(q)
    want = {"leaseId": m["leaseId"], "success": True, "renewed": 1, "newExpiresAt": MICROS}
    same("by message", await k.queen.renew(m), want)
    same("by id", await k.queen.renew(m["leaseId"]), want)
    same("by list, each lease once", await k.queen.renew([m, m, m["leaseId"]]), [want])
    await asyncio.sleep(4.5)
    await k.none(q)
    same("ack", await k.queen.ack(m, True, G), {"success": True})


@case("lease/RenewRefused")
async def renew_refused(k: Kit) -> None:
    """Nothing to renew is a verdict, not an error."""
    q = await k.queue(lease_time=4)
    want = {"success": False, "renewed": 0, "newExpiresAt": None}
    same("an unknown lease", await k.queen.renew(NOBODY), want)
    await k.push(q, "a")
    [m] = await k.pop(q)
    await k.done([m])
    same("a lease that was given back", await k.queen.renew(m), want)
    await k.push(q, "b")
    [m] = await k.pop(q)
    await asyncio.sleep(4.3)
    same("a lease that ended", await k.queen.renew(m), want)


@case("lease/AutoRenew")
async def auto_renew(k: Kit) -> None:
    """A consumer that renews keeps a message longer than its lease."""
    q = await k.queue(lease_time=4)
    await k.push(q, "a")
    seen = []

    async def slow(m: dict) -> None:
        seen.append(m["transactionId"])
        await asyncio.sleep(6)

    consumer = k.queen.queue(q).group("g").subscription_mode("all").batch(1).limit(1).renew_lease(True, 500)
    running = asyncio.ensure_future(consumer.consume(slow)._execute())
    await asyncio.sleep(5)
    await k.none(q)
    await asyncio.wait_for(running, 20)
    same("handled", seen, ["a"])
    same("pending", await k.pending(q), 0)


@case("lease/WithoutRenewal")
async def without_renewal(k: Kit) -> None:
    """A consumer that does not renew loses the message, and its ack fails."""
    q = await k.queue(lease_time=4)
    await k.push(q, "a")
    pauses = [6.0, 0.0]

    async def slow(_: dict) -> None:
        await asyncio.sleep(pauses.pop(0))

    consumer = k.queen.queue(q).group("g").subscription_mode("all").batch(1).limit(2).timeout_millis(9000)
    await asyncio.wait_for(consumer.consume(slow), 40)
    same("handled twice", pauses, [])
    same("pending", await k.pending(q), 0)


@case("lease/SeekTakesIt")
async def seek_takes_it(k: Kit) -> None:
    q = await k.queue()
    await k.push(q, "a", "b")
    m = await k.pop(q)
    await k.queen.admin.seek_consumer_group("g", q, {"toEnd": True})
    same("ack", await k.queen.ack(m[0], True, G), {"success": False, "error": "invalid or expired lease"})
    same("renew", await k.queen.renew(m[0]), {"success": False})
    await k.none(q)
