"""A headless browser, driven over the pipe of the DevTools protocol: it needs no package.

The protocol is https://chromedevtools.github.io/devtools-protocol/: requests and answers are JSON,
each ended by a zero byte, on descriptors 3 and 4 of the browser.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Seconds that the browser has for an answer, or a page for what is waited for.
PATIENCE = 60
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Without a sandbox it runs in a container too; the last five keep it from the network.
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-quic",
    "--disable-sync",
]
# What a key is in the protocol: its code, its number, and the text that it types.
_KEYS = {
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "/": ("Slash", 191, "/"),
}


def installed() -> str | None:
    """The browser of this machine, or None."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class PageError(Exception):
    """The page raised, or did not come to what was waited for."""


class Page:
    """The one page of a browser."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = requests, answers
        self._numbers = itertools.count(1)
        self._read = b""
        self.problems: list[str] = []
        self._session = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, address: str) -> None:
        """Loads a page; what it raises is added to `problems`.

        An address that differs in its fragment alone loads nothing anew, as in any browser.
        """
        self._call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript; a promise's when it is kept.

        Raises:
          PageError: the expression raises.
        """
        answer = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise PageError(f"{expression}: {_told(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Returns when an expression of JavaScript is true.

        Raises:
          PageError: it is not after PATIENCE seconds.
        """
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({condition})"):
            if time.monotonic() > end:
                raise PageError(f"not true after {PATIENCE} s: {condition}; {self.problems}")
            time.sleep(0.05)

    def press(self, *keys: str) -> None:
        """Presses keys one after the other, as a keyboard does."""
        for key in keys:
            code, number, text = _KEYS.get(key) or (f"Key{key.upper()}", ord(key.upper()), key)
            same = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            self._call("Input.dispatchKeyEvent", type="keyDown", text=text, **same)
            self._call("Input.dispatchKeyEvent", type="keyUp", **same)

    def click(self, x: float, y: float) -> None:
        """Clicks on a point of what is in sight, in CSS pixels."""
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def resize(self, width: int, height: int) -> None:
        """The size of what is in sight; below 500 pixels wide it is a phone's."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def prefer(self, scheme: str) -> None:
        """`light` or `dark`, as a user's system has it."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, file: Path) -> None:
        """Writes what is in sight as a PNG."""
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        request = {"id": number, "method": method, "params": params}
        if self._session is not None:
            request["sessionId"] = self._session
        _write(self._requests, json.dumps(request).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == number:
                break
            self._note(message)
        if "error" in message:
            raise PageError(f"{method}: {message['error']['message']}")
        return message["result"]

    def _note(self, event: dict[str, Any]) -> None:
        """Keeps what the page raised or could not load."""
        params = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(_told(params["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.problems.append(params["entry"]["text"])

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE)
            more = os.read(self._answers, 1 << 20) if ready else b""
            if not more:
                raise PageError(f"the browser is gone, or silent for {PATIENCE} s")
            self._read += more
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)


@contextlib.contextmanager
def browser(program: str, folder: Path) -> Iterator[Page]:
    """A browser with one empty page; it ends with the block.

    Args:
      program: the browser, as `installed` finds it.
      folder: an empty folder for its profile.
    """
    requests, answers = os.pipe(), os.pipe()
    # Numbers that are neither 3 nor 4, which the browser reads and writes.
    theirs = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (requests[0], answers[1])]
    for end in (requests[0], answers[1]):
        os.close(end)

    def hand_over() -> None:
        for end, number in zip(theirs, (3, 4), strict=True):
            os.dup2(end, number)

    process = subprocess.Popen(
        [program, *_FLAGS, f"--user-data-dir={folder}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=hand_over,
        pass_fds=(3, 4),
    )
    for end in theirs:
        os.close(end)
    try:
        yield Page(requests[1], answers[0])
    finally:
        # Without a pipe to read from it ends, and its helpers with it.
        os.close(requests[1])
        process.wait(PATIENCE)
        os.close(answers[0])


def _write(end: int, data: bytes) -> None:
    while data:
        data = data[os.write(end, data) :]


def _told(details: dict[str, Any]) -> str:
    return details.get("exception", {}).get("description") or details["text"]
