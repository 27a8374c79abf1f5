"""Buffered push: by count, by time, by hand, and on close."""

from queen.errors import QueenError

from kit import ANY, Kit, Recorder, case, item, raises, same

HOUR = 3_600_000


@case("buffer/ByCount")
async def by_count(k: Kit) -> None:
    """Full batches go out by themselves, in order; the rest waits."""
    q = await k.queue()
    client = k.client()
    names = [f"m{i}" for i in range(25)]
    buffered = client.queue(q).partition("p").buffer({"message_count": 10, "time_millis": HOUR})
    got = await buffered.push([item(n) for n in names])
    same("push", got, {"buffered": True, "count": 25})
    await k.eventually("two batches", lambda: at_least(k, q, 20))
    same("stats", client.get_buffer_stats(), {"totalBufferedMessages": one_batch_left, "activeBuffers": 1})
    await client.queue(q).partition("p").flush_buffer()
    same("stats", client.get_buffer_stats(), {"totalBufferedMessages": 0})
    await k.pop(q, names)
    await client.close()


def one_batch_left(n: int) -> bool:
    return n <= 5


async def at_least(k: Kit, q: str, n: int) -> bool:
    return await k.pending(q) >= n


@case("buffer/ByTime")
async def by_time(k: Kit) -> None:
    q = await k.queue()
    client = k.client()
    await client.queue(q).partition("p").buffer({"message_count": 100, "time_millis": 50}).push([item("a"), item("b")])
    await k.pop(q, ["a", "b"])
    await client.close()


@case("buffer/Blocks")
async def blocks(k: Kit) -> None:
    """A buffer that is full holds its producer until the broker took some."""
    q = await k.queue()
    client = k.client()
    names = [f"m{i}" for i in range(200)]
    options = {"message_count": 5, "max_size": 5, "time_millis": HOUR}
    await client.queue(q).partition("p").buffer(options).push([item(n) for n in names])
    await client.flush_all_buffers()
    await k.pop(q, names, batch=500)
    await client.close()


@case("buffer/Lanes")
async def lanes(k: Kit) -> None:
    """Each queue and partition has a buffer of its own; all are flushed."""
    q = await k.queue()
    client = k.client()
    for p in ["p1", "p2", "p3"]:
        await client.queue(q).partition(p).buffer({"time_millis": HOUR}).push([item(p + "a"), item(p + "b")])
    same("stats", client.get_buffer_stats(), {"activeBuffers": 3, "totalBufferedMessages": 6, "flushesPerformed": ANY})
    await client.flush_all_buffers()
    for p in ["p1", "p2", "p3"]:
        await k.pop(q, [p + "a", p + "b"], partition=p)
    await client.close()


@case("buffer/Close")
async def close(k: Kit) -> None:
    """close() sends what is buffered; after it nothing is taken."""
    q = await k.queue()
    client = k.client()
    names = [f"m{i}" for i in range(150)]
    lane = client.queue(q).partition("p").buffer({"time_millis": HOUR})
    await lane.push([item(n) for n in names])
    await client.close()
    await k.pop(q, names, batch=500)
    await raises("buffered push on a closed client", push(lane), QueenError)


async def push(lane: object) -> None:
    await lane.push(item("late"))  # type: ignore[attr-defined]


@case("buffer/ContextManager")
async def context_manager(k: Kit) -> None:
    q = await k.queue()
    async with k.client() as client:
        await client.queue(q).partition("p").buffer({"time_millis": HOUR}).push(item("a"))
    await k.pop(q, ["a"])


@case("buffer/KeepsWhatIsRefused")
async def keeps_what_is_refused(k: Kit) -> None:
    """A batch the broker refuses stays at the front and is tried again."""
    seen = Recorder()
    client = k.client(transport=seen)
    lane = client.queue(k.name()).partition("bad\u0001")
    await lane.buffer({"message_count": 1, "time_millis": HOUR, "retry_delay_millis": 50}).push(item("a"))
    await k.eventually("three tries", lambda: tried(seen, 3))
    same("refused", set(seen.statuses), {400})
    await client._buffer_manager.cleanup()  # close() would try on for 30 s
    await client.close()


async def tried(seen: Recorder, times: int) -> bool:
    return len(seen.statuses) >= times
