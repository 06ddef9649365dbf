"""Which lines of the implementation a piece of work reaches, by `sys.monitoring` (Python 3.12).

A line is named by its module, its function and its text, so that what was recorded holds on while
the code around it changes.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

Line = tuple[str, str, str]  # module, function, text

_TOOL = 3  # one of those that Python leaves free
# Names of functions that have none.
_UNNAMED = re.compile(r"\.?<\w+>")


class Recorder:
    """Records the lines of the functions of a package. What runs at import belongs to no work."""

    def __init__(self, package: Path):
        self._prefix = f"{package}/"
        self._lines: set[tuple[CodeType, int]] = set()
        self._monitoring: Any = vars(sys)["monitoring"]
        events = self._monitoring.events
        self._monitoring.use_tool_id(_TOOL, "reach")
        self._monitoring.register_callback(_TOOL, events.PY_START, self._starts)
        self._monitoring.register_callback(_TOOL, events.LINE, self._line)
        self._monitoring.set_events(_TOOL, events.PY_START)

    @contextmanager
    def recording(self) -> Iterator[set[Line]]:
        """A set that holds, afterwards, the lines that were reached inside."""
        reached: set[Line] = set()
        self._lines.clear()
        self._monitoring.restart_events()
        yield reached
        # A copy is taken at once: threads that the work left behind still reach lines.
        reached |= {self._named(code, line) for code, line in self._lines.copy()}

    def _starts(self, code: CodeType, offset: int) -> Any:
        if code.co_filename.startswith(self._prefix) and code.co_name != "<module>":
            self._monitoring.set_local_events(_TOOL, code, self._monitoring.events.LINE)
        return self._monitoring.DISABLE

    def _line(self, code: CodeType, line: int) -> Any:
        self._lines.add((code, line))
        return self._monitoring.DISABLE

    def _named(self, code: CodeType, line: int) -> Line:
        text = linecache.getline(code.co_filename, line).strip()
        function = _UNNAMED.sub("", code.co_qualname)
        return code.co_filename.removeprefix(self._prefix), function, text
