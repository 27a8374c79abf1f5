"""Traces: notes about messages, written by consumers, read by administrators."""

from typing import Any, List

from kit import MILLIS, UUID, Kit, case, refused, same, true


async def consume_one(k: Kit, q: str, notes: List[Any]) -> List[Any]:
    """Consume one message and write notes about it."""
    answers: List[Any] = []

    async def handle(m: Any) -> None:
        for note in notes:
            answers.append(await m["trace"](note))
        answers.append(m["partitionId"])

    await k.queen.queue(q).group("g").subscription_mode("all").batch(1).limit(1).timeout_millis(2000).consume(handle)
    return answers


@case("trace/Write")
async def write(k: Kit) -> None:
    """A note has data, maybe names and a kind; a bad one is no error."""
    q, name = await k.queue(), k.name("t")
    await k.push(q, "a")
    [first, second, bad, partition] = await consume_one(k, q, [
        {"data": {"step": 1}, "traceName": [name, name + "2"], "eventType": "step"}, {"data": {"step": "é"}}, {"text": "no data"},
    ])
    same("answers", [first, second], [{"success": True, "traceId": UUID}] * 2)
    same("without data", bad, {"success": False})
    got = await k.queen.admin.get_traces_for_message(partition, "a")
    same("for the message", got, {"traces": [
        {"id": first["traceId"], "data": {"step": 1}, "event_type": "step", "trace_names": [name, name + "2"],
         "created_at": MILLIS, "consumer_group": "g", "worker_id": str},
        {"id": second["traceId"], "data": {"step": "é"}, "event_type": "info", "trace_names": []},
    ]})
    same("for another", await k.queen.admin.get_traces_for_message(partition, "b"), {"traces": []})


@case("trace/ByName")
async def by_name(k: Kit) -> None:
    """Newest or oldest first is not said; each with its message's address."""
    q, name = await k.queue(), k.name("t b")
    await k.push(q, "a")
    [*_, partition] = await consume_one(k, q, [{"data": n, "traceName": name} for n in range(3)])
    got = await k.queen.admin.get_traces_by_name(name)
    same("by name", got, {"total": 3, "pagination": {"limit": 100, "offset": 0}, "traces": [
        {"transaction_id": "a", "partition_id": partition, "partition_name": "p", "queue_name": q, "consumer_group": "g",
         "event_type": "info", "trace_names": [name], "created_at": MILLIS, "id": UUID, "data": int}] * 3})
    true("each once", sorted(t["data"] for t in got["traces"]) == [0, 1, 2])
    page = await k.queen.admin.get_traces_by_name(name, limit=2, offset=2)
    same("page", page, {"total": 3, "pagination": {"limit": 2, "offset": 2}, "traces": [{"id": got["traces"][2]["id"]}]})
    same("no such name", await k.queen.admin.get_traces_by_name(k.name()), {"total": 0, "traces": []})


@case("trace/Names")
async def names(k: Kit) -> None:
    q, name = await k.queue(), k.name("t")
    await k.push(q, "a")
    await consume_one(k, q, [{"data": n, "traceName": name} for n in range(3)])
    got = await k.queen.admin.get_trace_names(limit=1000)
    same("names", got, {"total": int, "pagination": {"limit": 1000, "offset": 0}, "trace_names": list})
    mine = [n for n in got["trace_names"] if n["trace_name"] == name]
    same("mine", mine, [{"trace_count": 3, "message_count": 1, "last_seen": MILLIS}])
    page = await k.queen.admin.get_trace_names(limit=1)
    same("page", len(page["trace_names"]), 1)


@case("trace/Refused")
async def refusals(k: Kit) -> None:
    """The client sends what it is given as an address."""
    q = await k.queue()
    await k.push(q, "a")
    [m] = await k.pop(q)
    client = k.queen._http_client
    body = {"transactionId": "a", "partitionId": m["partitionId"], "consumerGroup": None, "traceNames": None, "eventType": "info"}
    await refused("no data", client.post("/api/v1/traces", body), 400, "data")
    same("nulls", await client.post("/api/v1/traces", {**body, "data": None}), {"success": True, "traceId": UUID})
