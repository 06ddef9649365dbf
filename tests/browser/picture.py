"""`python -m tests.browser.picture PAGE PICTURE [VIEW]`: what a page of runs shows, as a PNG.

The picture in the README is that of a whole run, as `python -m reports html` writes its page. VIEW
is what stands behind the # of the page's address.
"""

import sys
import tempfile
from pathlib import Path

from tests.browser.devtools import Page, browser, installed

_WIDTH, _HEIGHT = 1200, 800


def main(arguments: list[str]) -> int:
    """Takes the picture; returns the exit status."""
    program = installed()
    if program is None:
        print("a picture needs Chromium or Chrome on the path", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, browser(program, Path(folder)) as page:
        take(page, *arguments)
    return 0


def take(page: Page, file: str, picture: str, view: str = "") -> None:
    """Opens a page of runs in the browser's page, and writes what is in sight."""
    page.resize(_WIDTH, _HEIGHT)
    page.prefer("light")
    page.open(f"{Path(file).resolve().as_uri()}#{view}")
    page.wait("view")
    page.screenshot(Path(picture))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
