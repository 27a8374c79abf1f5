"""The key/value store: verbs, verdicts, expiries, refusals."""

import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any, List

from queen.errors import KvError
from queen.kv import ops

from kit import Kit, case, one_of, raises, same, true


@case("kv/PutAndGet")
async def put_and_get(k: Kit) -> None:
    kv, ns = k.queen.kv, k.name("ns")
    put = await kv.put(ns, "k", {"n": 1}, forever=True)
    same("put", put, {"index": 0, "op": "put", "applied": True, "key": "k", "value": {"n": 1}, "version": int})
    got = await kv.get(ns, "k")
    same("get", got, {"found": True, "key": "k", "value": {"n": 1}, "version": put["version"], "expiresAt": None, "updatedAt": str})
    again = await kv.put(ns, "k", 2, ttl_seconds=60)
    true("a new version", again["version"] != put["version"])
    same("get", await kv.get(ns, "k"), {"value": 2, "expiresAt": str, "version": again["version"]})
    missing = await kv.get(ns, "nope")
    same("get of nothing", missing, {"found": False, "key": "nope"})
    true("truths", got and put and not missing)


@case("kv/Values")
async def values(k: Kit) -> None:
    """Any JSON value; null is a value too."""
    kv, ns = k.queen.kv, k.name("ns")
    wants: List[Any] = [None, True, 0, 9007199254740993, -5, 1.5, "", "é☃", [], [1, None], {}, {"a": {"b": []}}]
    for n, want in enumerate(wants):
        await kv.put(ns, f"k{n}", want, forever=True)
        same(f"value {want!r}", await kv.get(ns, f"k{n}"), {"found": True, "value": want})


@case("kv/Keys")
async def keys(k: Kit) -> None:
    """Keys are any text."""
    kv, ns = k.queen.kv, k.name("ns")
    for key in ["a/b/c", "with space", "größe ☃", "q?x=1&y#z%20", "\"quoted\\", "x" * 512]:
        same(f"put {key[:20]!r}", await kv.put(ns, key, key, forever=True), {"applied": True, "key": key})
        same(f"get {key[:20]!r}", await kv.get(ns, key), {"found": True, "value": key})


@case("kv/Expect")
async def expect(k: Kit) -> None:
    """A put that expects a version, or nothing; its verdict shows what is."""
    kv, ns = k.queen.kv, k.name("ns")
    same("none yet", await kv.put(ns, "k", 1, forever=True, expect=0), {"applied": True})
    v = (await kv.get(ns, "k"))["version"]
    lost = await kv.put(ns, "k", 2, forever=True, expect=0)
    same("exists", lost, {"applied": False, "reason": "exists", "value": 1, "version": v})
    true("a lost put is false", not lost)
    same("version", await kv.put(ns, "k", 2, forever=True, expect=v + 1), {"applied": False, "reason": "version", "value": 1})
    same("at its version", await kv.put(ns, "k", 2, forever=True, expect=v), {"applied": True, "value": 2})
    same("absent", await kv.put(ns, "nope", 2, forever=True, expect=v), {"applied": False, "reason": "absent", "value": None, "version": 0})


@case("kv/PutIfAbsent")
async def put_if_absent(k: Kit) -> None:
    kv, ns = k.queen.kv, k.name("ns")
    same("first", await kv.put_if_absent(ns, "k", "mine", ttl_seconds=60), {"op": "putIfAbsent", "applied": True, "value": "mine"})
    same("second", await kv.put_if_absent(ns, "k", "yours", ttl_seconds=60), {"applied": False, "reason": "exists", "value": "mine"})
    same("once", [await kv.once(ns, "o", ttl_seconds=60), await kv.once(ns, "o", ttl_seconds=60)], [True, False])


@case("kv/Race")
async def race(k: Kit) -> None:
    """Of ten claims of one key, one wins; ten counts are ten."""
    kv, ns = k.queen.kv, k.name("ns")
    won = await asyncio.gather(*(kv.once(ns, "gate", forever=True) for _ in range(10)))
    same("winners", won.count(True), 1)
    await asyncio.gather(*(kv.incr(ns, "n", forever=True) for _ in range(10)))
    same("count", await kv.get(ns, "n"), {"value": 10})


@case("kv/Delete")
async def delete(k: Kit) -> None:
    kv, ns = k.queen.kv, k.name("ns")
    v = (await kv.put(ns, "k", 1, forever=True))["version"]
    same("wrong version", await kv.delete(ns, "k", expect=v + 1), {"applied": False, "reason": "version"})
    same("delete", await kv.delete(ns, "k", expect=v), {"op": "delete", "applied": True, "key": "k"})
    same("again", await kv.delete(ns, "k"), {"applied": False, "reason": "absent"})
    true("gone", not await kv.get(ns, "k"))


@case("kv/Incr")
async def incr(k: Kit) -> None:
    """Counts, with a floor and a ceiling that refuse."""
    kv, ns = k.queen.kv, k.name("ns")
    same("made", await kv.incr(ns, "n", forever=True), {"op": "incr", "applied": True, "value": 1})
    same("by 5", await kv.incr(ns, "n", delta=5, max=6, forever=True), {"applied": True, "value": 6})
    same("ceiling", await kv.incr(ns, "n", max=6, forever=True), {"applied": False, "reason": "limit", "value": 6})
    same("floor", await kv.incr(ns, "n", delta=-7, min=0, forever=True), {"applied": False, "reason": "limit", "value": 6})
    same("down", await kv.incr(ns, "n", delta=-6, min=0, forever=True), {"applied": True, "value": 0})
    await kv.put(ns, "text", "x", forever=True)
    same("no number", await kv.incr(ns, "text", forever=True), {"applied": False, "reason": "type", "value": 0})
    same("too much at first", await kv.incr(ns, "new", delta=9, max=6, forever=True), {"applied": False, "reason": "limit", "value": 0})
    same("fractions", await kv.incr(ns, "f", delta=1.5, forever=True), {"applied": True, "value": 1.5})
    same("fractions", await kv.incr(ns, "f", forever=True), {"applied": True, "value": 2.5})


@case("kv/Expiry")
async def expiry(k: Kit) -> None:
    """A key that is over is not there; a count keeps the expiry it was made with.

    The calls before the expiry may wait for the rate limit, which is all cases'.
    """
    kv, ns = k.queen.kv, k.name("ns")
    await kv.put(ns, "k", 1, ttl_seconds=6)
    await kv.incr(ns, "n", ttl_seconds=6)
    await kv.incr(ns, "n", ttl_seconds=600)
    await kv.put(ns, "stays", 1, ttl_seconds=6)
    await kv.put(ns, "stays", 2, ttl=timedelta(minutes=5))
    await kv.put(ns, "later", 3, until=datetime.now(timezone.utc) + timedelta(minutes=5))
    await asyncio.sleep(6.3)
    same("gone", await kv.get(ns, "k"), {"found": False})
    same("free", await kv.put_if_absent(ns, "k", 2, ttl_seconds=60), {"applied": True})
    same("counted anew", await kv.incr(ns, "n", ttl_seconds=60), {"applied": True, "value": 1})
    same("stays", await kv.get(ns, "stays"), {"value": 2})
    same("later", await kv.get(ns, "later"), {"value": 3})


@case("kv/GetMany")
async def get_many(k: Kit) -> None:
    kv, ns = k.queen.kv, k.name("ns")
    await kv.batch([ops.put(ns, key, key.upper(), forever=True) for key in ["b", "a"]])
    got = await kv.get_many(ns, ["a", "nope", "b"])
    same("get many", {**got, "rows": sorted(got["rows"], key=lambda r: r["key"])}, {
        "op": "getMany", "rows": [{"key": "a", "value": "A", "version": int}, {"key": "b", "value": "B"}],
        "missing": ["nope"], "truncated": False,
    })


@case("kv/Prefix")
async def prefix(k: Kit) -> None:
    """Pages in byte order; what only begins alike is not part of it."""
    kv, ns = k.queen.kv, k.name("ns")
    await kv.batch([ops.put(ns, f"p:{n}", n, forever=True) for n in range(5)] + [ops.put(ns, "q:0", 9, forever=True)])
    page = await kv.get_prefix(ns, "p:", limit=2)
    same("page", page, {"rows": [{"key": "p:0", "value": 0, "version": int}, {"key": "p:1"}], "truncated": True, "nextAfter": "p:1"})
    page = await kv.get_prefix(ns, "p:", after="p:3", limit=2, keys_only=True)
    same("last page", page, {"rows": [{"key": "p:4"}], "truncated": False, "nextAfter": None})
    true("keys only", "value" not in page["rows"][0])
    same("walk", [r["key"] for r in await kv.list_all(ns, "p:", limit=2)], [f"p:{n}" for n in range(5)])
    same("nothing", await kv.get_prefix(ns, "zzz"), {"rows": [], "truncated": False})


@case("kv/Batch")
async def batch(k: Kit) -> None:
    """Results stand where their operations stood."""
    kv, ns = k.queen.kv, k.name("ns")
    got = await kv.batch([ops.put(ns, "z", 1, forever=True), ops.get(ns, "nope"), ops.incr(ns, "a", ttl_seconds=9), ops.delete(ns, "m")])
    same("results", got, [
        {"index": 0, "op": "put", "applied": True}, {"index": 1, "op": "get", "found": False},
        {"index": 2, "op": "incr", "value": 1}, {"index": 3, "op": "delete", "applied": False, "reason": "absent"},
    ])
    same("no operations", await kv.batch([]), [])


@case("kv/ManyKeysAreReadAfterTheWrites")
async def read_after(k: Kit) -> None:
    """A read of many keys, or of a prefix, sees what its call writes."""
    kv, ns = k.queen.kv, k.name("ns")
    await kv.put(ns, "k1", 1, forever=True)
    reads = [ops.get_many(ns, ["k1", "k2"]), ops.get_prefix(ns, "k")]
    got = await kv.batch([*reads, ops.delete(ns, "k1"), ops.put(ns, "k2", 2, forever=True)])
    same("results", got[:2], [{"rows": [{"key": "k2"}], "missing": ["k1"]}, {"rows": [{"key": "k2", "value": 2}]}])


@case("kv/Required")
async def required(k: Kit) -> None:
    """A required operation that loses undoes the call. The client sees no
    results, and calls that an error where it sent one operation."""
    kv, ns = k.queen.kv, k.name("ns")
    await kv.put(ns, "there", 1, forever=True)
    got = await kv.batch([ops.put(ns, "new", 1, forever=True), ops.put_if_absent(ns, "there", 2, forever=True, required=True)])
    same("results", got, [])
    same("undone", await kv.get(ns, "new"), {"found": False})
    error = await raises("one operation", kv.put(ns, "there", 2, forever=True, expect=0, required=True), KvError)
    same("code", error.code, "kv_result_missing")
    same("required and won", await kv.put(ns, "other", 2, forever=True, expect=0, required=True), {"applied": True})


@case("kv/Refused")
async def refusals(k: Kit) -> None:
    """What cannot be done is refused with a code and a reason."""
    kv, ns = k.queen.kv, k.name("ns")
    bare = {"ns": ns, "key": "k", "value": 1}
    for what, operations, status, code, reason in [
        ("a bad namespace", [ops.put("Bad Name", "k", 1, forever=True)], 400, "kv_bad_request", "kv_bad_namespace"),
        ("no expiry", [{"op": "put", **bare}], 400, "kv_bad_request", "kv_expiry_not_specified"),
        ("two expiries", [{"op": "put", **bare, "forever": True, "ttlSeconds": 5}], 400, "kv_bad_request", "kv_expiry_not_specified"),
        ("an unknown verb", [{"op": "swap", **bare}], 400, "kv_bad_request", "kv_unknown_op"),
        ("a check, of 2.1", [ops.check(ns, "k", expect=0)], 400, "kv_bad_request", "kv_unknown_op"),
        ("a key twice", [ops.put(ns, "k", 1, forever=True), ops.delete(ns, "k")], 400, "kv_bad_request", "kv_duplicate_key_in_call"),
        ("a long key", [ops.put(ns, "k" * 513, 1, forever=True)], 413, "payload_too_large", "kv_key_too_large"),
        ("a large value", [ops.put(ns, "k", "v" * 65600, forever=True)], 413, "payload_too_large", "kv_value_too_large"),
        ("too many", [ops.get(ns, f"k{n}") for n in range(257)], 400, "kv_bad_request", "kv_too_many_ops"),
        ("no prefix", [{"op": "getPrefix", "ns": ns, "prefix": ""}], 400, "kv_bad_request", "kv_prefix_required"),
    ]:
        error = await raises(what, kv.batch(operations), KvError)
        same(what, [error.status, error.code, error.reason, error.detail], [status, code, reason, one_of(str, None)])
    true("nothing written", not await kv.get(ns, "k"))


@case("kv/RateLimit")
async def rate_limit(k: Kit) -> None:
    """Over the rate the broker says 429; the client waits and tries again."""
    kv, ns = k.queen.kv, k.name("ns")
    await asyncio.gather(*(kv.incr(ns, "n", forever=True) for _ in range(320)))
    same("counted", await kv.get(ns, "n"), {"value": 320})
