"""The page of the matrix in a headless browser: keys, sizes, colours, and how fast it is."""

import itertools
import json
import threading
from pathlib import Path

import pytest
from rich.console import Console

from reports.__main__ import main
from reports.html import page as html
from reports.html.data import encoded, page_data
from tests.browser.devtools import browser, installed
from tests.browser.picture import take
from tests.reports.rows import failure, row

ROWS = [
    row("sin_float32"),
    row(
        "sin_float32",
        mode="graph",
        outcome="mismatch",
        limitation="special#1",
        ulps=9.0,
        culprit="jax",
        jax_ulps=7,
        judged_ulps=0,
        opinion="float64",
    ),
    failure("cos_float32", message="there is no kernel for " + "x" * 300),
    row("concatenate_int8", family="arrays"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a browser; a test fails where the page raised."""
    program = installed()
    if program is None:
        pytest.skip("neither Chromium nor Chrome is installed")
    with browser(program, tmp_path_factory.mktemp("profile")) as page:
        yield page
        assert page.problems == []


@pytest.fixture
def show(page, tmp_path):
    """`show(rows, ..., view="search=sin")` opens the page of these runs, the latest last."""

    def opened(*runs, view=""):
        files = [tmp_path / f"run{number}.jsonl" for number in range(len(runs))]
        for file, rows in zip(files, runs, strict=True):
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        into = tmp_path / "page.html"
        arguments = ["html", *map(str, files), "--into", str(into)]
        assert main(arguments, Console(quiet=True)) == 0
        return show_file(page, into, view)

    return opened


def show_file(page, file: Path, view: str = "", width: int = 1200, height: int = 800):
    page.resize(width, height)
    page.open(f"{file.as_uri()}#{view}")
    page.wait("view")
    return page


def summary(page) -> str:
    return page.evaluate("$('summary').textContent")


def details(page) -> str:
    """What is open, or nothing."""
    return page.evaluate("$('details').hidden ? '' : $('details').innerText")


def focused(page) -> str:
    """The id, the name or the text of what has the keyboard."""
    return page.evaluate(
        "(({id, name, textContent}) => id || name || textContent)(document.activeElement)"
    )


def focus_grid(page) -> None:
    """Tab after Tab, until the grid has the keyboard."""
    for _ in range(20):
        page.press("Tab")
        if focused(page) == "grid":
            return
    raise AssertionError("Tab does not lead to the grid")


@pytest.mark.parametrize(
    ("view", "harnesses", "columns"),
    [
        ("", 3, 2),
        ("search=cos", 1, 2),
        ("family=arrays", 1, 2),
        ("dtype=float32", 2, 2),
        ("outcome=red", 1, 2),
        ("outcome=mismatch", 1, 2),
        ("columns=graph", 1, 1),
        ("search=cos&family=arrays", 0, 2),
    ],
)
def test_a_filter_in_the_address_narrows_what_is_shown(show, view, harnesses, columns):
    page = show(ROWS, view=view)
    assert summary(page).startswith(f"{harnesses} harnesses, ")
    shown = page.evaluate("document.querySelectorAll('#head .cell').length")
    assert shown == columns
    families = page.evaluate("[...document.querySelectorAll('.level0')].map(e => e.innerText)")
    assert bool(families) == bool(harnesses)


def test_a_filter_that_is_typed_stands_in_the_address(show):
    page = show(ROWS)
    page.press("/", *"cos")
    assert focused(page) == "search"
    assert page.evaluate("location.hash") == "#search=cos"
    assert summary(page).startswith("1 harnesses, 1 of 4 cells: 0 pass, 1 do not, 1 red")
    page.evaluate("location.hash = 'search=sin'")
    page.wait("$('summary').textContent.includes('2 of 4 cells')")


def test_a_cell_opens_by_keyboard(show):
    page = show(ROWS, view="family=elementwise")
    focus_grid(page)
    # Open the family, its last primitive, that one's harness, the second of its cells.
    page.press("Enter", "ArrowDown", "ArrowDown", "Enter", "ArrowDown")
    page.press("ArrowRight", "ArrowRight", "Enter")
    told = details(page)
    for part in (
        "sin_float32\n",
        "cpu xla graph",
        "mismatch",
        "9 ULPs, tolerance 4",
        "JAX is wrong: by float64, JAX is off by 7 ULPs and jax2tf by 0",
        "Reason (special#1)",
        "python -m harnesses run --name sin_float32 --device cpu --mode graph --lowering xla -n 0",
        "python -m harnesses show --name sin_float32",
        "mismatch in run0: JAX 0.12.0",
    ):
        assert part in told
    page.press("Escape")
    assert details(page) == ""
    assert focused(page) == "grid"


def test_the_keyboard_stays_where_something_is_open(show):
    page = show(ROWS, view="family=elementwise")
    focus_grid(page)
    page.press("ArrowRight", "Enter")
    assert "1 error, 1 red" in details(page)
    page.press("Tab", "Tab")
    assert focused(page) == "cos_float32"
    page.press("Enter")
    assert "there is no kernel for xxx" in details(page)
    assert focused(page) == "Close (Escape)"
    page.press("Enter")
    assert details(page) == ""
    assert focused(page) == "grid"


def test_the_address_opens_a_cell(show):
    page = show(ROWS, view="cell=cos_float32|cpu+xla+eager&open=elementwise")
    assert "there is no kernel for xxx" in details(page)
    assert page.evaluate("document.querySelectorAll('.level1').length") == 2


def test_what_changed_beside_another_run(show):
    page = show([failure("sin_float32"), *ROWS[1:]], ROWS, view="beside=0&outcome=changed")
    assert summary(page).startswith("1 harnesses, ")
    assert summary(page).endswith(", 1 changed")
    page.evaluate("location.hash = 'cell=sin_float32|cpu+xla+eager'")
    page.wait("!$('details').hidden")
    assert "error in run0: JAX 0.12.0" in details(page)
    assert "pass in run1: JAX 0.12.0" in details(page)


def test_a_phone(show):
    page = show(ROWS, view="open=elementwise,elementwise/cos,elementwise/sin")
    page.resize(390, 844)
    # Every filter stands in one line, which scrolls by itself.
    assert page.evaluate("$('filters').clientHeight") < 40
    x, y = page.evaluate(
        "(({x, y}) => [x, y])(document.querySelector('.level2 ~ .cell').getBoundingClientRect())"
    )
    page.click(x + 9, y + 9)
    assert "there is no kernel for xxx" in details(page)
    # Messages, commands and names are broken into lines; nothing lies beyond the edge.
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.evaluate("$('details').scrollWidth <= $('details').clientWidth")
    assert page.evaluate("$('grid').scrollWidth <= $('grid').clientWidth")


def test_a_picture_of_the_page(page, show, tmp_path):
    show(ROWS)
    take(page, str(tmp_path / "page.html"), str(tmp_path / "page.png"))
    picture = (tmp_path / "page.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    # The header of a PNG has its size.
    assert [int.from_bytes(picture[at : at + 4]) for at in (16, 20)] == [1200, 800]


_COLOURS = """(() => {
  const style = getComputedStyle(document.body);
  const quiet = getComputedStyle($("summary"));
  return [style.backgroundColor, style.color, quiet.color];
})()"""


def test_light_and_dark(show):
    page = show(ROWS)
    papers = []
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        paper, ink, quiet = map(luminance, page.evaluate(_COLOURS))
        papers.append(paper)
        # The contrasts that WCAG 2.2 asks for of text (level AA).
        assert contrast(paper, ink) > 7
        assert contrast(paper, quiet) > 4.5
    light, dark = papers
    assert light > 0.9
    assert dark < 0.05


def luminance(colour: str) -> float:
    """The relative luminance of `rgb(r, g, b)` by WCAG 2.2."""
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


# Milliseconds until the page shows what a filter leaves.
_TIMED = """(() => {
  const before = performance.now();
  filters.search.value = SEARCH;
  filters.search.dispatchEvent(new Event("input", { bubbles: true }));
  document.body.offsetHeight;
  return performance.now() - before;
})()"""
_SCROLLED = """(async () => {
  const before = performance.now();
  for (let step = 1; step <= 20; step++) {
    $("grid").scrollTop = step * 1000;
    await new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)));
  }
  return (performance.now() - before) / 20;
})()"""


def test_300_000_cells(page, tmp_path, record_property):
    file = tmp_path / "many.html"
    file.write_text(html(encoded(many_cells(tmp_path, harnesses=10_000, columns=30))))
    show_file(page, file)
    # Milliseconds, which are 850, 30 to 140 and 110 where nothing else runs on two cores.
    times = {"load": page.evaluate("performance.now()")}
    assert "10000 harnesses, 300000 of 300000 cells" in summary(page)
    for search in ("p39", "case1234", "nothing", ""):
        times[f"search {search}"] = page.evaluate(_TIMED.replace("SEARCH", repr(search)))
    everything = "[...group(view.harnesses, (h) => data.harnesses.family[h]).keys()]"
    page.evaluate(f"{everything}.forEach((f) => opened.add(data.words.family[f]))")
    page.evaluate("redraw(); view.lines.slice().forEach((line) => opened.add(line.key)); redraw()")
    assert page.evaluate("view.lines.length") > 10_000
    assert page.evaluate("document.querySelectorAll('.row').length") < 60  # those in sight
    times["scroll"] = page.evaluate(_SCROLLED)
    for name, milliseconds in times.items():
        record_property(name, milliseconds)
    assert times.pop("load") < 8000
    assert max(times.values()) < 1000, times


def many_cells(folder: Path, harnesses: int, columns: int) -> dict:
    """The data of a page: 20 families of 20 primitives, of which one cell in 16 fails."""
    file = folder / "many.jsonl"
    with file.open("w") as written:
        for number in range(harnesses):
            made = failure if number % 16 == 5 else row
            name = f"p{number % 400}_case{number}_float{number % 15}"
            placed = made(name, family=f"family{number % 20}", dtype=f"float{number % 15}")
            written.write(json.dumps(placed | {"primitive": f"p{number % 400}"}) + "\n")
    data = page_data([file], {})
    (run,) = data["runs"]
    (column,) = run["columns"]
    titles = itertools.islice((f"cpu xla mode{n}" for n in itertools.count()), columns)
    run["columns"] = [column | {"title": title} for title in titles]
    run["asked"] = harnesses * columns
    return data


def test_rows_that_come_appear_and_leave_what_is_open(page, tmp_path):
    file = tmp_path / "run.jsonl"
    file.write_text(json.dumps(ROWS[2]) + "\n")
    told: list[str] = []
    started = threading.Event()

    class Told(Console):
        def print(self, *objects, **_):
            told.append(str(objects[0]))
            started.set()

    arguments = ["html", str(file), "--live", "--port", "0"]
    threading.Thread(target=main, args=(arguments, Told()), daemon=True).start()
    assert started.wait(30)
    page.resize(1200, 800)
    page.open(told[0].split(" ")[0])
    page.wait("view")
    focus_grid(page)
    page.press("ArrowRight", "Enter", "Tab", "Tab")
    assert focused(page) == "cos_float32"
    with file.open("a") as more:
        more.write(json.dumps(ROWS[0]) + "\n")
    page.wait("$('summary').textContent.startsWith('2 harnesses')")
    assert "1 pass, 1 error, 1 red" in details(page)
    assert focused(page) == "Close (Escape)"
