"""What `jax2tf.export` replaces at its path, what it refuses, and what stands there meanwhile."""

from __future__ import annotations

import json
import os
import re

import pytest

from jax2tf._src.export import destination, formats, openvino_pairs
from tests.impl.export_programs import PARAMS, export, left, mlp
from tf_substrates import swapping

SAVED_MODEL = {
    "saved_model.pb": "",
    "fingerprint.pb": "",
    "variables/variables.index": "",
    "variables/variables.data-00000-of-00001": "",
    "assets/words.txt": "",
    "assets.extra/jax2tf.json": "",
}
GRAPH = json.dumps({"modelTopology": {}, "weightsManifest": [{"paths": ["group1-shard1of1.bin"]}]})
TFJS = {"model.json": GRAPH, "group1-shard1of1.bin": ""}
XML = '<?xml version="1.0"?>\n<net name="Model0" version="11">\n</net>\n'

# Name of the path, what stands there (None is a file, a dict a folder), and what is said of it.
REFUSED = [
    ("model", None, "it is a file, and what is written is a folder"),
    ("model", {"notes.txt": "mine"}, "it is not a SavedModel: it has no saved_model.pb"),
    ("model", {"1": SAVED_MODEL}, "it has no saved_model.pb"),
    ("model", SAVED_MODEL | {"notes.txt": "mine"}, "notes.txt is not of the SavedModel"),
    ("model", SAVED_MODEL | {"variables/mine.txt": ""}, "variables/mine.txt is not of the Saved"),
    ("model", SAVED_MODEL | {"assets.extra/warmup": ""}, "assets.extra/warmup is not of the Saved"),
    ("model", {"saved_model.pb": "", "variables": ""}, "variables is not of the SavedModel"),
    ("model.tfjs", None, "it is a file, and what is written is a folder"),
    ("model.tfjs", {"model.json": "mine"}, "it has no model.json of one"),
    ("model.tfjs", {"model.json": "[]"}, "it has no model.json of one"),
    ("model.tfjs", TFJS | {"notes.txt": "mine"}, "notes.txt is not of the model"),
    ("model.tflite", {"notes.txt": "mine"}, "it is a folder, and what is written is a file"),
    ("model.tflite", {}, "it is a folder, and what is written is a file"),
    ("model.onnx", {"notes.txt": "mine"}, "it is a folder, and what is written is a file"),
    ("model.xml", {"notes.txt": "mine"}, "it is a folder, and what is written is a file"),
]


def made(path, content):
    if content is None:
        path.write_text("mine")
        return
    path.mkdir()
    for name, text in content.items():
        if isinstance(text, dict):
            made(path / name, text)
        else:
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_text(text)


def everything(folder):
    return {p: p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


@pytest.mark.parametrize(("name", "content", "reason"), REFUSED)
def test_what_is_no_model_is_not_replaced(tmp_path, name, content, reason):
    made(tmp_path / name, content)
    before = everything(tmp_path)
    for overwrite in (False, True):
        with pytest.raises(
            FileExistsError, match=r"is not replaced: .* What to do: move"
        ) as caught:
            export(mlp, PARAMS, "b, 4", tmp_path / name, overwrite=overwrite)
        assert reason in str(caught.value)
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (None, "there is no model.xml of OpenVINO"),
        ("<other/>", "there is no model.xml of OpenVINO"),
    ],
)
def test_a_bin_that_belongs_to_no_xml_is_not_replaced(tmp_path, xml, reason):
    (tmp_path / "model.bin").write_text("weights of another library")
    if xml is not None:
        (tmp_path / "model.xml").write_text(xml)
    before = everything(tmp_path)
    with pytest.raises(FileExistsError, match=reason):
        export(mlp, PARAMS, "b, 4", tmp_path / "model.xml", overwrite=True)
    assert everything(tmp_path) == before


REPLACED = [
    ("savedmodel", SAVED_MODEL),
    ("savedmodel", {"saved_model.pbtxt": "", "variables/variables.index": ""}),
    ("savedmodel", {}),
    ("savedmodel", SAVED_MODEL | {".DS_Store": ""}),
    ("tfjs", TFJS),
    ("tfjs", {}),
    ("litert", None),
    ("onnx", None),
    ("openvino", None),
]


@pytest.mark.parametrize(("format", "content"), REPLACED)
@pytest.mark.parametrize("linked", [False, True])
def test_models_are_replaced(tmp_path, format, content, linked):
    chosen = formats.FORMATS[format]
    target = tmp_path / f"model{chosen.suffix}"
    if linked:
        made(tmp_path / "elsewhere", content)
        target.symlink_to("elsewhere")
    else:
        made(target, content)
    with pytest.raises(FileExistsError, match="pass overwrite=True"):
        destination.refuse_existing(chosen.files(target), False, chosen.obstacle)
    destination.refuse_existing(chosen.files(target), True, chosen.obstacle)


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path):
    export(mlp, PARAMS, "b, 4", tmp_path / "first", verify=False)
    before = everything(tmp_path / "first")
    (tmp_path / "model").symlink_to("first")
    (tmp_path / "nowhere.tflite").symlink_to("not_there")
    for name in ("model", "nowhere.tflite"):
        export(lambda x: x, None, "2", tmp_path / name, overwrite=True, verify=False)
        assert not (tmp_path / name).is_symlink()
    assert everything(tmp_path / "first") == before
    assert left(tmp_path) == ["first", "model", "nowhere.tflite"]


@pytest.mark.parametrize("path", [".", "..", "a/..", "/"])
def test_paths_without_a_name(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"path should end in the name of what is written, got"):
        export(mlp, PARAMS, "b, 4", path, overwrite=True)


@pytest.mark.parametrize("suffix", ["", ".tflite"])
def test_names_as_long_as_the_system_takes(tmp_path, suffix):
    path = tmp_path / f"{'é' * 120}{'a' * (15 - len(suffix))}{suffix}"
    assert len(os.fsencode(path.name)) == 255
    for overwrite in (False, True):
        export(lambda x: x * 2, None, "2", path, overwrite=overwrite)
    assert left(tmp_path) == [path.name]
    longer = path.with_name(f"a{path.name}")
    with pytest.raises(ValueError, match=r"longer than the system takes.* name has 256"):
        export(lambda x: x * 2, None, "2", longer)
    assert left(tmp_path) == [path.name]


class Seen:
    """Notes what a function reads at a place after each step that renames, as after a kill."""

    def __init__(self, monkeypatch, read, fails_at=None):
        self.all = [read()]
        self.fails_at = fails_at
        self._read = read
        for owner, name in ((swapping, "put"), (os, "rename"), (os, "replace")):
            monkeypatch.setattr(owner, name, self._watched(getattr(owner, name)))

    def _watched(self, function):
        def called(*args, **kwargs):
            if function.__name__ == "put":
                self.fails_at = None if self.fails_at is None else self.fails_at - 1
                if self.fails_at == -1:
                    raise OSError(28, "No space left on device")
            function(*args, **kwargs)
            self.all.append(self._read())

        return called


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_file_is_there_whatever_happens(tmp_path, monkeypatch, exchanges):
    path = tmp_path / "model.tflite"
    path.write_text("old")
    if not exchanges:
        monkeypatch.setattr(swapping, "_exchanged", lambda *_: False)
    seen = Seen(monkeypatch, path.read_bytes)
    export(mlp, PARAMS, "b, 4", path, overwrite=True)
    assert set(seen.all) == {b"old", path.read_bytes()}


def test_a_folder_is_there_whatever_happens(tmp_path, monkeypatch):
    path = tmp_path / "model"
    export(lambda x: x, None, "2", path, verify=False)
    seen = Seen(monkeypatch, lambda: frozenset(everything(path).items()))
    export(mlp, PARAMS, "b, 4", path, overwrite=True)
    assert len(set(seen.all)) == 2
    assert left(tmp_path) == ["model"]


def written_pair(folder, arrays):
    """A .bin and a .xml that says where each array stands in it."""
    folder.mkdir(exist_ok=True)
    data, start = [], 0
    for array in arrays:
        data.append(f'<data element_type="u8" offset="{start}" size="{len(array)}" />')
        start += len(array)
    (folder / "m.bin").write_bytes(b"".join(arrays))
    (folder / "m.xml").write_text(f'<net name="a" version="11">{"".join(data)}</net>')
    return [folder / "m.bin", folder / "m.xml"]


def read_pair(folder):
    places = re.findall(r'offset="(\d+)" size="(\d+)"', (folder / "m.xml").read_text())
    data = (folder / "m.bin").read_bytes()
    return tuple(data[int(start) :][: int(size)] for start, size in places)


PAIRS = [
    ([b"abc", b"de"], [b"123", b"45"]),
    ([b"abc"], [b"1234567", b"8"]),
    ([b"abcdefgh", b"ij"], [b"1"]),
    ([], [b"12"]),
    ([b"ab"], []),
    ([], []),
]


@pytest.mark.parametrize("fails_at", [None, *range(5)])
@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_two_files_always_fit_each_other(tmp_path, monkeypatch, old, new, exchanges, fails_at):
    if not exchanges:
        monkeypatch.setattr(swapping, "_exchanged", lambda *_: False)
    targets = written_pair(tmp_path / "place", old)
    written = written_pair(tmp_path / "new", new)
    expected = everything(tmp_path / ("new" if fails_at is None else "place"))
    steps = openvino_pairs.steps(written, targets)
    seen = Seen(monkeypatch, lambda: read_pair(tmp_path / "place"), fails_at)
    if fails_at is None:
        destination.put(steps)
    else:
        with pytest.raises(OSError, match="No space"):
            destination.put(steps)
    assert set(seen.all) <= {tuple(old), tuple(new)}
    assert seen.all[-1] == tuple(new if fails_at is None else old)
    found = everything(tmp_path / "place")
    assert {p.name: text for p, text in found.items()} == {
        p.name: text for p, text in expected.items()
    }


def test_a_first_pair_is_put_with_the_xml_last(tmp_path):
    (tmp_path / "place").mkdir()
    written = written_pair(tmp_path / "new", [b"12"])
    steps = openvino_pairs.steps(written, [tmp_path / "place" / n for n in ("m.bin", "m.xml")])
    assert [target.suffix for _, target in steps] == [".bin", ".xml"]
