"""Drives a Queen broker with its official client and reports case by case.

    QUEEN_URL=http://127.0.0.1:6632 [QUEEN_TOKEN=…] python run.py [name …]

Each line of the output is a JSON object: one for each case, {"case", "seconds"}
with "failed" or "skipped" and the reason where it did not pass, and at the end
{"done": number of cases}. A name selects the cases that begin with it. What
the client itself prints goes to standard error.
"""

import asyncio
import contextlib
import importlib
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Dict, List, TextIO

from kit import CASES, Case, Failed, Kit, Skipped, kit_from_environment

# Most cases wait for a lease or a timer, so many run side by side.
SIDE_BY_SIDE = 12

# A case that takes longer hangs, in seconds.
LONGEST = 90.0


async def outcome(c: Case, kit: Kit) -> Dict[str, Any]:
    """Run one case."""
    try:
        await asyncio.wait_for(c.run(kit), LONGEST)
    except Skipped as reason:
        return {"skipped": str(reason)}
    except asyncio.TimeoutError:
        return {"failed": f"hangs for {LONGEST:g} s"}
    except Failed as failure:
        return {"failed": f"{failure}\nat {place(failure)}"}
    except Exception as error:  # noqa: BLE001 - whatever a case does not expect fails it
        return {"failed": f"{type(error).__name__}: {error}\nat {place(error)}"}
    return {}


def place(error: Exception) -> str:
    """Where in the cases something went wrong."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "cases_" in f.filename]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))


async def run(selected: List[Case], out: TextIO) -> None:
    """Run cases and report each when it ends."""
    kit = kit_from_environment()
    turns = asyncio.Semaphore(SIDE_BY_SIDE)

    async def report(c: Case) -> None:
        async with turns:
            began = time.monotonic()
            result = await outcome(c, kit)
            line = {"case": c.name, "seconds": round(time.monotonic() - began, 2), **result}
            print(json.dumps(line), file=out, flush=True)

    await asyncio.gather(*(report(c) for c in selected))
    await kit.queen.close()


def main() -> None:
    for path in sorted(Path(__file__).parent.glob("cases_*.py")):
        importlib.import_module(path.stem)  # registers its cases
    names = sys.argv[1:]
    selected = [c for c in CASES if not names or any(c.name.startswith(n) for n in names)]
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        asyncio.run(run(selected, out))
    print(json.dumps({"done": len(selected)}), file=out, flush=True)


if __name__ == "__main__":
    main()
