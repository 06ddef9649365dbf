"""A process that answers requests: a line of JSON each way, over its standard streams.

It is started at the first request and stays for the next ones. What goes wrong ends it, so that the
next request gets a new one, and nothing waits for ever.
"""

import json
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Any


class ServiceError(Exception):
    """The process answered that it could not, or did not answer as it should."""


class Service:
    """A process that answers {"value": ...}, or {"problem": "what went wrong"}.

    Attributes:
      name: what messages call it.
      command: the program and its arguments.
      timeout: how many seconds an answer may take, from the start of the process on.
    """

    def __init__(self, name: str, command: Sequence[str], timeout: float):
        self.name = name
        self.command = command
        self.timeout = timeout
        self._process: subprocess.Popen | None = None
        self._closing = ExitStack()

    def ask(self, request: Any) -> Any:
        """The value that the process answers.

        Raises:
          ServiceError: if it answers a problem, with the problem's words; and if it ends, is silent
            for longer than the timeout, or answers what is no answer, after which it is gone.
        """
        process = self._running()
        silent = threading.Event()

        def end() -> None:
            silent.set()
            process.kill()

        # A read cannot be told to give up; killed, the process ends it.
        timer = threading.Timer(self.timeout, end)
        timer.start()
        try:
            line = _exchanged(process, request)
        finally:
            timer.cancel()
            timer.join()
        if silent.is_set():
            raise self._gone(f"gave no answer in {self.timeout:g} s")
        if not line.endswith(b"\n"):
            raise self._gone(f"ended with status {process.wait()}{self._last_words()}")
        return self._value(line)

    def close(self) -> None:
        """Ends the process, if there is one."""
        self._process = None
        self._closing.close()

    def _running(self) -> subprocess.Popen:
        if self._process is None:
            self._process, self._stderr = self._closing.enter_context(_started(self.command))
        return self._process

    def _value(self, line: bytes) -> Any:
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and answer.keys() == {"value"}:
            return answer["value"]
        if isinstance(answer, dict) and answer.keys() == {"problem"}:
            raise ServiceError(answer["problem"])
        raise self._gone(f"gave an answer that is none: {line[:80].decode(errors='replace')!r}")

    def _gone(self, what: str) -> ServiceError:
        self.close()
        return ServiceError(f"{self.name} {what}")

    def _last_words(self) -> str:
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f": {said[-1][:200]}" if said else ""


@contextmanager
def _started(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen, IO[bytes]]]:
    """A process, and the file that takes its standard error; killed when the context ends."""
    with tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        )
        try:
            yield process, stderr
        finally:
            process.kill()
            process.communicate()


def _exchanged(process: subprocess.Popen, request: Any) -> bytes:
    """The line that the process answers; one without an end if it ended before."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
    except BrokenPipeError:
        return b""
    return process.stdout.readline()
