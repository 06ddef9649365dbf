"""The page with a search box: `python .ci/supports_page.py build/supports.html` writes it.

It holds what the package carries for `python -m jax2tf supports`, and needs nothing from outside.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def page() -> str:
    """The text of the page."""
    texts = [
        (ROOT / "impl/jax2tf/_src/explain" / name).read_text(encoding="utf-8")
        for name in ("support.json", "limitations.json")
    ]
    data = f'{{"support": {texts[0]}, "limitations": {texts[1]}}}'
    template = (ROOT / ".ci/supports.html").read_text(encoding="utf-8")
    # A reason may hold what ends a script.
    return template.replace("DATA", data.replace("</", "<\\/"), 1)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
