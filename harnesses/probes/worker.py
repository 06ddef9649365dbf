"""A process that tries uses of ops in one engine: a line of JSON for each, over its streams."""

from __future__ import annotations

import gc
import json
import os
import sys

from harnesses.engine.consumers import EngineError
from harnesses.probes.catalogue import catalogue
from harnesses.probes.engines import engine_of
from harnesses.probes.trial import kernel_of, tried


def main(target: str) -> int:
    """Answers requests, {"use": NAME, "dtype": DTYPE}, until there are no more."""
    # Engines write to the standard output as they like; the answers need it for themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        engine = engine_of(target)
    except EngineError as error:
        print(json.dumps({"problem": str(error)}), file=answers)
        return 1
    catalogue()
    # TensorFlow collects garbage at each SavedModel: what is imported need not be looked at again.
    gc.freeze()
    for line in sys.stdin:
        asked = json.loads(line)
        probe, dtype = catalogue()[asked["use"]], asked["dtype"]
        outcome = str(tried(probe, dtype, engine)) if kernel_of(probe, dtype) else None
        print(json.dumps({"value": outcome}), file=answers)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
