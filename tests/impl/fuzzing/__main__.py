"""`python -m tests.impl.fuzzing KIND FILE`: thousands of random programs, none lost to a failure.

    python -m tests.impl.fuzzing combinations build/fuzz.jsonl --examples 20000
    python -m tests.impl.fuzzing call_tf --program 12345      one again, by its number

An example is a program in one use. Each program has a number, which draws it, so that one that
failed is repeated alone. Programs run in processes of their own, some hundred in each: TensorFlow
keeps what it compiles, and a process that dies or hangs costs one program. Rows are on disk as they
come; a file that is there goes on where it ended. The exit status is 1 if a program failed.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import itertools
import json
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from tests.impl.fuzzing.campaign import KINDS, Row, run_numbers

PROGRAMS_OF_A_PROCESS = 200


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.impl.fuzzing", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("file", nargs="?", type=pathlib.Path, help="where the rows go")
    parser.add_argument("--examples", type=int, default=20_000, help="run until there are so many")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--program", type=int, nargs="+", help="run these here, and print rows")
    options = parser.parse_args(arguments)
    if options.program:
        return run_numbers(options.kind, options.program)
    if options.file is None:
        parser.error("name the file that the rows go to, or programs with --program")
    return Campaign(options.kind, options.file, options.first).run(
        options.examples, options.workers
    )


class Campaign:
    """The programs of one kind from a number on, and the file of their rows."""

    def __init__(self, kind: str, file: pathlib.Path, first: int):
        self.kind, self.file = kind, file
        self.lock, self.began = threading.Lock(), time.monotonic()
        lines = file.read_text().splitlines() if file.exists() else []
        rows: list[Row] = [json.loads(line) for line in lines]
        if other := {row["kind"] for row in rows} - {kind}:
            raise SystemExit(f"{file} has rows of {', '.join(other)}, and not of {kind}.")
        self.done = {row["number"] for row in rows}
        self.examples = sum(row["examples"] for row in rows)
        self.failed = [row["number"] for row in rows if "error" in row]
        self.numbers = (n for n in itertools.count(first) if n not in self.done)

    def run(self, examples: int, workers: int) -> int:
        """Runs programs until there are so many examples; returns the exit status."""
        self.file.parent.mkdir(parents=True, exist_ok=True)

        def work(_: int) -> None:
            while self.examples < examples:
                self.run_some()

        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            collections.deque(pool.map(work, range(workers)), maxlen=0)
        self.say()
        return 1 if self.failed else 0

    def run_some(self) -> None:
        """Runs as many programs as one process runs, and says how far the campaign is."""
        with self.lock:
            numbers = list(itertools.islice(self.numbers, PROGRAMS_OF_A_PROCESS))
        for row in in_processes(self.kind, numbers):
            with self.lock, self.file.open("a") as file:
                file.write(json.dumps(row) + "\n")
                self.done.add(row["number"])
                self.examples += row["examples"]
                if "error" in row:
                    self.failed.append(row["number"])
                    print(f"  program {row['number']}: {row['error'][:200]}", flush=True)
        self.say()

    def say(self) -> None:
        """How much has run, what failed, and how to run that again."""
        again = " ".join(map(str, sorted(self.failed)))
        print(
            f"{len(self.done)} programs, {self.examples} examples, {len(self.failed)} failed, "
            f"{time.monotonic() - self.began:.0f} s"
            + (
                f"; again: python -m tests.impl.fuzzing {self.kind} --program {again}" * bool(again)
            ),
            flush=True,
        )


def in_processes(kind: str, numbers: Sequence[int]) -> Iterator[Row]:
    """Runs programs in another process, in a new one after one that died: that is a row too."""
    while numbers:
        command = [sys.executable, "-m", "tests.impl.fuzzing", kind, "--program"]
        done = 0
        with subprocess.Popen(
            [*command, *map(str, numbers)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("{"):
                    yield json.loads(line)
                    done += 1
        if done < len(numbers):
            end = f"the process ended with status {process.returncode}"
            yield {"kind": kind, "number": numbers[done], "examples": 0, "error": end}
            done += 1
        numbers = numbers[done:]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
