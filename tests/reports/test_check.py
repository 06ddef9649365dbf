"""`python -m reports check` goes red for each table of which one figure is another."""

import re
import shutil

from reports import check, rendering

LAST_DIGIT = re.compile(r"\d(?=\D*\Z)")


def falsified(text: str) -> str:
    """The text with another last digit."""
    return LAST_DIGIT.sub(lambda digit: str(9 - int(digit[0])), text, count=1)


def test_each_falsified_table_and_each_file_that_nothing_makes_is_named(tmp_path, reports):
    folder = tmp_path / "tables"
    shutil.copytree(rendering.TABLES, folder)
    tables = sorted(folder.glob("*.md"))
    for table in tables:
        text = table.read_text(encoding="utf-8")
        assert falsified(text) != text, table.name
        table.write_text(falsified(text), encoding="utf-8")
    (folder / "by_hand.md").write_text("40 of 40\n", encoding="utf-8")

    status, printed = reports("check", "--into", folder)

    assert status == 1
    assert len(tables) > 20
    for table in tables:
        assert f"{table} is stale" in printed
    assert f"{folder / 'by_hand.md'} is made by no command of this check" in printed


def test_a_finding_says_the_command_that_writes_the_table(tmp_path):
    (tmp_path / "twins.md").write_text("old")
    found = check._stale({"twins.md": "new"}, tmp_path, "tables")
    expected = f"{tmp_path / 'twins.md'} is stale. Write it anew with: python -m reports tables"
    assert found == [expected]


def test_a_folder_that_is_not_there_is_one_line(tmp_path, reports):
    status, printed = reports("check", "--into", tmp_path / "none")
    assert status == 2
    assert printed.strip() == f"python -m reports check: there is no folder {tmp_path / 'none'}"
