"""`python -m reports html`: runs of the matrix as one page to look at, which needs no server.

Primitives (and their harnesses) are rows, device, lowering and mode are columns, outcomes are
colours. A cell opens to its message, the reason in the ledger, the line that repeats it and what
came of it in the other runs. Filters stand in the address, so a view can be bookmarked.
"""

from __future__ import annotations

import argparse
import http.server
from pathlib import Path

import jinja2
from markupsafe import Markup
from rich.console import Console

from harnesses.harness import DIRECTIONS
from limitations import ledger
from reports import rendering, results
from reports.html.data import encoded, page_data

_FOLDER = Path(__file__).parent
PAGE = _FOLDER.parents[1] / "build" / "matrix.html"
# Milliseconds after which a page that is served asks for new rows.
_REFRESH = 3000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results",
        type=Path,
        nargs="*",
        help="results files, the latest run last; default: those of whole runs, or of parts",
    )
    parser.add_argument("--into", type=Path, default=PAGE, help="the file that is written")
    parser.add_argument("--ledger", type=Path, help="where the reasons stand (default: jax2tf's)")
    parser.add_argument("--live", action="store_true", help="serve it here while a run goes on")
    parser.add_argument("--port", type=int, default=8000, help="of --live")


def main(options: argparse.Namespace, console: Console) -> int:
    """Writes the page, or serves it until Ctrl-C."""
    files = options.results or results.latest_files()
    if not files:
        raise results.ResultsError(
            f"there are no results in {results.RESULTS}. Make them with: python -m harnesses run"
        )
    if options.live:
        return _serve(files, options, console)
    results.refuse_inputs(options.into, files)
    text = page(_data(files, options))
    rendering.write({options.into.name: text}, options.into.parent)
    console.print(f"wrote {options.into} ({len(text) / 1000:,.0f} kB)", soft_wrap=True)
    return 0


def page(data: str, *, refresh: int = 0) -> str:
    """The page as HTML.

    Args:
      data: what `encoded` gives.
      refresh: milliseconds after which the page fetches `data` anew from beside it; 0 for never.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("page.html.jinja").render(
        style=Markup((_FOLDER / "page.css").read_text("utf-8")),
        script=Markup((_FOLDER / "page.js").read_text("utf-8")),
        data=data,
        refresh=refresh,
    )


def _data(files: list[Path], options: argparse.Namespace) -> str:
    limitations = [one for d in DIRECTIONS for one in ledger.load(options.ledger, d)]
    return encoded(page_data(files, {one.where: one for one in limitations}))


def _serve(files: list[Path], options: argparse.Namespace, console: Console) -> int:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/data":
                self._answer("text/plain", _data(files, options))
            elif self.path == "/":
                self._answer("text/html; charset=utf-8", page("", refresh=_REFRESH))
            else:
                self.send_error(404)

        def _answer(self, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the console belongs to the run."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", options.port), Handler) as server:
        console.print(f"http://127.0.0.1:{server.server_port}/ shows the run; Ctrl-C ends this")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0
