"""Where `rewrite` writes: what it refuses to replace, and what stands there whatever happens."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from tf_substrates import swapping
from tf_substrates.__main__ import main
from tf_substrates.rewriter import packages, targets

SOURCE = "import tensorflow as tf\n\n\ndef f(x):\n    return tf.exp(x)\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a package `src/mypkg` and a project's table."""
    package = tmp_path / "src" / "mypkg"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("from mypkg.inner import f\n")
    (package / "inner" / "__init__.py").write_text(SOURCE)
    (package / "data.txt").write_text("7\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def everything(folder: pathlib.Path) -> dict[str, bytes | str | None]:
    """All files, links and folders below a folder, with what they hold."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in folder.rglob("*")
    }


def refused(capsys, folder, *given, substrate="numpy"):
    """What the command says, in one line, of what it refuses; nothing below the folder changes."""
    before = everything(folder)
    assert main(["rewrite", *given, "--substrate", substrate]) == 2
    assert everything(folder) == before
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    return said.err


NAMES = [
    "",
    ".",
    "..",
    "../victim",
    "a/b",
    "a.b",
    "a-b",
    "1a",
    "class",
    "None",
    "a b",
    "/tmp/a",
    "é!",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_no_package_has(place, capsys, name):
    (place / "victim").mkdir()
    (place / "victim" / "notes.txt").write_text("mine")
    said = refused(capsys, place, "src/mypkg", "--out", "src", "--name", name)
    assert f"cannot be called {name!r}" in said
    assert "--name some_package_jax" in said


@pytest.mark.parametrize(
    "package", ["", ".", "..", "../..", "/etc", "src", "a.b", "src/mypkg/inner.py"]
)
def test_packages_that_are_none(place, capsys, package):
    said = refused(capsys, place, package, "--out", "out")
    assert "no package" in said
    assert repr(package) in said


OVERLAPS = [
    ("src/mypkg", "src", "mypkg"),
    ("src/mypkg", "src/mypkg", "other"),
    ("src/mypkg", "src/mypkg/inner", "other"),
    ("src/mypkg", "src/mypkg/new/folders", "other"),
    ("src/mypkg", "src/../src/mypkg/..", "mypkg"),
    ("src/mypkg", "linked", "mypkg"),
    ("src/mypkg", "linked/mypkg", "other"),
    ("linked/mypkg", "src", "mypkg"),
    ("link_to_package", "src", "mypkg"),
    ("src/mypkg/inner", "src", "mypkg"),
    ("src/mypkg", ".", "src"),
    ("src/mypkg", "src", "MyPkg"),
    ("{absolute}/src/mypkg", "src", "mypkg"),
    ("src/mypkg", "{absolute}/src", "mypkg"),
]


@pytest.mark.parametrize(("package", "out", "name"), OVERLAPS)
def test_a_target_that_overlaps_its_source(place, capsys, package, out, name):
    (place / "linked").symlink_to("src")
    (place / "link_to_package").symlink_to("src/mypkg")
    package, out = (text.format(absolute=place) for text in (package, out))
    said = refused(capsys, place, package, "--out", out, "--name", name)
    assert "would be written over or inside of the package that it is made from" in said


def as_folder(target):
    target.mkdir()
    (target / "mine.txt").write_text("mine")


def as_link(target):
    as_folder(target.parent / "elsewhere")
    target.symlink_to("elsewhere")


def as_false_mark(target):
    as_folder(target)
    (target / ".tf_substrates.json").write_text("{}")


IN_THE_WAY = [
    (as_folder, "it has no .tf_substrates.json"),
    (lambda target: target.mkdir(), "it has no .tf_substrates.json"),
    (as_false_mark, "it has no .tf_substrates.json of rewrite"),
    (as_link, "it is a symbolic link"),
    (lambda target: target.symlink_to("nowhere"), "it is a symbolic link"),
    (lambda target: target.write_text("mine"), "it is no folder"),
    (os.mkfifo, "it is no folder"),
]


@pytest.mark.parametrize(("make", "reason"), IN_THE_WAY)
def test_what_rewrite_did_not_make_is_not_replaced(place, capsys, make, reason):
    (place / "out").mkdir()
    make(place / "out" / "mypkg_numpy")
    said = refused(capsys, place, "src/mypkg", "--out", "out")
    assert "mypkg_numpy is not replaced" in said
    assert reason in said


@pytest.mark.parametrize("what", ["added", "changed", "linked", "a folder"])
def test_work_of_the_user_in_a_rewritten_package_is_kept(place, capsys, what):
    written = packages.write([packages.planned("src/mypkg", "numpy", "out")])[0]
    if what == "added":
        (written / "inner" / "notes.txt").write_text("mine")
    elif what == "changed":
        (written / "data.txt").write_text("mine")
    elif what == "linked":
        (written / "data.txt").unlink()
        (written / "data.txt").symlink_to(place / "src" / "mypkg" / "data.txt")
    else:
        (written / "mine").mkdir()
    said = refused(capsys, place, "src/mypkg", "--out", "out")
    assert "mypkg_numpy is not replaced" in said


def test_an_earlier_one_is_replaced_with_what_python_left_there(place):
    written = packages.write([packages.planned("src/mypkg", "numpy", "out")])[0]
    (written / "__pycache__").mkdir()
    (written / "__pycache__" / "a.pyc").write_text("")
    (place / "src" / "mypkg" / "data.txt").unlink()
    assert (
        packages.write([packages.planned("src/mypkg", "jax", "out", name="mypkg_numpy")])[0]
        == written
    )
    assert sorted(everything(written)) == [
        *(".tf_substrates.json", "__init__.py", "inner", "inner/__init__.py")
    ]
    assert os.listdir("out") == ["mypkg_numpy"]


OUTS = {
    "a file": (lambda out: out.write_text("mine"), "is no folder"),
    "a link to nowhere": (lambda out: out.symlink_to("nowhere"), "is no folder"),
    "a link to itself": (lambda out: out.symlink_to("out"), "is no folder"),
}


@pytest.mark.parametrize("what", OUTS)
@pytest.mark.parametrize("below", ["", "/below/it"])
def test_a_folder_that_cannot_be_written_into(place, capsys, what, below):
    make, reason = OUTS[what]
    make(place / "out")
    assert reason in refused(capsys, place, "src/mypkg", "--out", f"out{below}")


def test_a_folder_that_may_not_be_written_into(place, capsys, monkeypatch):
    (place / "out").mkdir()
    # For root every folder may be written.
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(place / "out"))
    said = refused(capsys, place, "src/mypkg", "--out", "out/new")
    assert f"{place / 'out'} may not be written" in said


@pytest.mark.parametrize("has_older", [False, True])
@pytest.mark.parametrize("call", ["write_bytes", "copyfile", "mkdtemp", "rename", "put"])
def test_a_full_disk_leaves_all_as_it_was(place, capsys, monkeypatch, call, has_older):
    if has_older:
        packages.write([packages.planned("src/mypkg", "numpy", "new/out")])[0]
        (place / "src" / "mypkg" / "data.txt").write_text("8\n")

    def full(*_, **__):
        raise OSError(28, "No space left on device", "some/file")

    owner = {
        "write_bytes": pathlib.Path,
        "copyfile": packages.shutil,
        "mkdtemp": targets.tempfile,
        "rename": os,
        "put": targets.swapping,
    }[call]
    if call == "rename" and has_older:
        monkeypatch.setattr(swapping, "_exchanged", lambda *_: False)
    monkeypatch.setattr(owner, call, full)
    said = refused(capsys, place, "src/mypkg", "--out", "new/out")
    assert "cannot write some/file: No space left on device" in said


def test_a_name_that_is_too_long(place, capsys):
    said = refused(capsys, place, "src/mypkg", "--out", "new/out", "--name", "a" * 300)
    assert "File name too long" in said


TABLE = "[tool.tf_substrates]\npackages = {}\n"


def test_packages_of_a_table_are_written_together_or_not_at_all(place, capsys, monkeypatch):
    other = place / "src" / "other"
    other.mkdir()
    (other / "__init__.py").write_text("def f(:\n")
    (place / "pyproject.toml").write_text(TABLE.format(["mypkg", "other"]))
    before = everything(place)
    assert main(["rewrite", "--out", "out"]) == 2
    (other / "__init__.py").write_text("")
    (place / "out" / "other_jax").mkdir(parents=True)
    assert main(["rewrite", "--out", "out"]) == 2
    (place / "out" / "other_jax").rmdir()
    put, done = swapping.put, []

    def fails_at_the_third(made, target):
        done.append(target)
        if len(done) == 3:
            raise OSError(28, "No space left on device")
        put(made, target)

    monkeypatch.setattr(swapping, "put", fails_at_the_third)
    (place / "out").rmdir()
    assert main(["rewrite", "--out", "out"]) == 2
    before["src/other/__init__.py"] = b""
    assert everything(place) == before
    assert main(["rewrite", "--out", "out"]) == 0
    assert sorted(os.listdir("out")) == ["mypkg_jax", "mypkg_numpy", "other_jax", "other_numpy"]


@pytest.mark.parametrize("names", [["mypkg", "mypkg"], [""], ["../victim"], ["src.mypkg"]])
def test_tables_that_would_write_twice_or_elsewhere(place, capsys, names):
    (place / "pyproject.toml").write_text(TABLE.format(names))
    before = everything(place)
    assert main(["rewrite", "--out", "out"]) == 2
    assert everything(place) == before
    assert "written twice" in (said := capsys.readouterr().err) or "names of packages" in said


# A process that ends at the n-th call of the system that renames, links or deletes.
KILLED = """
import os, pathlib, sys
from tf_substrates import swapping
from tf_substrates.rewriter import packages
left = int(sys.argv[1])

def killed_at(function):
    def called(*args, **kwargs):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return function(*args, **kwargs)
    return called

for name in ("rename", "replace", "rmdir", "unlink", "mkdir"):
    setattr(os, name, killed_at(getattr(os, name)))
swapping._exchanged = killed_at(swapping._exchanged)
if sys.argv[2] == "two":
    swapping._exchanged = lambda *_: False
packages.write([packages.planned("src/mypkg", "numpy", "out")])[0]
"""


@pytest.mark.parametrize("steps", ["one", "two"])
def test_a_process_that_is_killed_leaves_the_old_or_the_new_whole(place, steps):
    written = packages.write([packages.planned("src/mypkg", "numpy", "out")])[0]
    old = everything(written)
    (place / "src" / "mypkg" / "data.txt").write_text("8\n")
    new = everything(packages.write([packages.planned("src/mypkg", "numpy", "other")])[0])
    seen = set()
    for step in range(100):
        program = [sys.executable, "-c", textwrap.dedent(KILLED), str(step), steps]
        status = subprocess.run(program, check=False).returncode
        folders = [written, *(place / "out").glob(".tf_substrates-*/*")]
        whole = [folder for folder in folders if folder.exists() and everything(folder) == old]
        if steps == "one":
            whole = [written]
        if not (written.exists() and everything(written) == new):
            assert whole, f"after step {step} neither is there"
            assert everything(whole[0]) == old
        seen.add(everything(written) == new if written.exists() else None)
        if status == 0:
            break
        with contextlib.suppress(FileNotFoundError):
            packages.shutil.rmtree("out")
        (place / "src" / "mypkg" / "data.txt").write_text("7\n")
        packages.write([packages.planned("src/mypkg", "numpy", "out")])[0]
        (place / "src" / "mypkg" / "data.txt").write_text("8\n")
    assert status == 0
    assert seen == ({False, True} if steps == "one" else {False, True, None})


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig", "cp1252"])
def test_files_keep_the_encoding_that_they_say(place, encoding):
    cookie = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    text = f"{cookie}import tensorflow as tf\nname = 'Größe'\n"
    (place / "src" / "mypkg" / "names.py").write_bytes(text.encode(encoding))
    written = packages.write([packages.planned("src/mypkg", "numpy", "out")])[0] / "names.py"
    expected = text.replace("tensorflow", "tf_substrates.numpy.tf")
    assert written.read_bytes().decode(encoding) == expected
    assert compile(written.read_bytes(), "names.py", "exec")


@pytest.mark.parametrize("data", [b"a = '\xff'\n", b"a = 1\0\n", b"# coding: nothing\n"])
def test_files_that_are_no_text(place, capsys, data):
    (place / "src" / "mypkg" / "names.py").write_bytes(data)
    for command in (
        ["rewrite", "src/mypkg", "--substrate", "numpy", "--out", "o"],
        ["check", "src/mypkg"],
    ):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert "names.py is no text" in said
        assert len(said.splitlines()) == 1
