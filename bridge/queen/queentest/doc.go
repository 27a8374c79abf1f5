// Package queentest is the conformance suite of a Queen broker: one named case
// for every rule of its HTTP contract that the bridge relies on. It leaves to
// the caller which broker that is: the embedded one and a real Queen 1.3.0
// must both pass.
//
// Each case cites the rule it checks (queen-contract.md, by section). Where
// the generations of Queen differ, 1.3.0 decides; "measured" marks what was
// seen on a real one; testdata/measured.txt lists all of that with its cases. Cases use queues of their
// own and run side by side; those that use up a shared limit run alone, last.
//
// Cases named Generation2 are about Queen 2.x, as far as its documentation says
// that it differs; nothing of that was measured. They run, with all cases that
// hold for both, against the embedded broker in its second generation.
//
// TestReal runs the suite against the broker at QUEEN_REAL_URL. It is part of
// a run only when that is set or when QUEENBRIDGE_REQUIRE_REAL asks for it, and
// fails when it was asked for and the broker is missing: `make test-real`
// starts one (real.sh) and does both.
//
// TestRealPythonClientOnQueen and …OnEmbedded drive both brokers with Queen's
// official Python client, whose cases (python) show what a program that was
// written for Queen sees. They are selected in the same way and need python3
// with venv; the client is installed from its package index once, into the
// cache beside the real broker.
//
// Shelf is beside the suite: a Pusher in memory, for tests that must see or
// disturb single pushes.
package queentest
