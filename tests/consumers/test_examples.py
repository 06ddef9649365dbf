"""The guide's examples of engines run, and give what JAX gives; so do programs of docs/examples."""

import contextlib
import functools
import http.server
import importlib.util
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from tests.browser import devtools
from tests.test_examples import check_tour

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/engines.md").read_text()
FILES_OF_DIGITS = ("digits.tflite", "digits_int8.tflite")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)


def run(code, names):
    exec(compile(code, "engines.md", "exec"), names)


def expected(names):
    return np.asarray(jax.jit(names["model"])(names["x"]))


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    model, *others = blocks("python")
    run(model, names)
    wanted = expected(names)
    for code in others:
        run(code, names)
    for engine in ("litert", "onnx", "in_openvino"):
        np.testing.assert_allclose(names[engine], wanted, rtol=1e-6)


def test_the_example_of_tfjs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    run(blocks("python")[0], names)
    (command,) = re.findall(r"^    python (-m harnesses.*)$", GUIDE, flags=re.MULTILINE)
    subprocess.run([sys.executable, *shlex.split(command)], check=True)
    program = next(code for code in blocks("js") if "tf.loadGraphModel" in code)
    answer = subprocess.run(
        ["node", "--eval", program], check=True, capture_output=True, text=True
    ).stdout
    result = json.loads(answer.strip().splitlines()[-1])
    np.testing.assert_allclose(result, expected(names), rtol=1e-6)


def program(name):
    path = ROOT / f"docs/examples/{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_batch_job(tmp_path):
    """The second worker has the other shards; what has results is not computed again."""
    in_jax, from_files, computed = program("batch_job").main(str(tmp_path))
    assert in_jax == from_files > 0.95
    assert computed == [2, 2, 0]


def test_speech_front_end(tmp_path):
    """A higher tone is loudest in a higher band."""
    difference, bands = program("speech_front_end").main(str(tmp_path))
    assert difference < 5e-3
    assert bands == sorted(set(bands))


def test_digits_on_phone(tmp_path):
    """The app reads what JAX reads; the guide shows what came, and the file is as it says."""
    guide = (ROOT / "docs/guides/phone.md").read_text()
    shares = program("digits_on_phone").main(tmp_path)
    shown = re.findall(r"^    (\S+): ([\d.]+)% of 360", guide, flags=re.MULTILINE)
    assert [name for name, _ in shown] == list(shares) == ["JAX", *FILES_OF_DIGITS]
    for name, percent in shown:
        assert shares[name] == pytest.approx(float(percent) / 100, abs=0.015)
        assert shares[name] == pytest.approx(shares["JAX"], abs=0.01)
    for name in FILES_OF_DIGITS:
        size = re.search(rf"`{name}` \| (\d+) kB", guide)[1]
        assert (tmp_path / name).stat().st_size == pytest.approx(1000 * int(size), rel=0.1)
        interpreter = Interpreter(str(tmp_path / name))
        (into,), (out,) = interpreter.get_input_details(), interpreter.get_output_details()
        assert interpreter.get_signature_list() == {
            "serving_default": {"inputs": ["image"], "outputs": ["probabilities"]}
        }
        for name_of, array in (("image", into), ("probabilities", out)):
            shape = ", ".join(map(str, array["shape"]))
            assert f"`{name_of}`, {array['dtype'].__name__} [{shape}]" in guide


def test_tour(tmp_path):
    """Each file, in its engine, as the README shows."""
    check_tour(program("tour"), tmp_path)


@pytest.mark.parametrize("engine", ["tfjs"])
def test_pose_in_browser(tmp_path, engine):
    """The model is run by TensorFlow.js as it is written; its page where there is a browser."""
    places, found = program("pose_in_browser").main(str(tmp_path))
    np.testing.assert_allclose(found, places, atol=0.1)
    assert (tmp_path / "tf.min.js").exists()
    assert "pose.tfjs/model.json" in (tmp_path / "index.html").read_text()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is not None:
        assert shown(browser, tmp_path) == [[f"{x:.1f}" for x in place] for place in places]


# A one, a zero and a seven, as lines between points of the sheet, whose sides are 1.
DRAWN = {
    1: [(0.5, 0.15), (0.5, 0.85)],
    0: [(0.5 + 0.22 * np.cos(t), 0.5 + 0.35 * np.sin(t)) for t in np.linspace(0, 2 * np.pi, 25)],
    7: [(0.25, 0.2), (0.7, 0.2), (0.45, 0.85)],
}


@pytest.mark.parametrize("engine", ["tfjs"])
def test_draw_digits(tmp_path, engine):
    """Both engines read what is drawn, and give JAX's probabilities of what the page sees."""
    example = program("draw_digits")
    params, share = example.main(tmp_path)
    assert share > 0.96
    chromium = devtools.installed()
    if chromium is None:
        return
    with served(tmp_path) as address, devtools.browser(chromium, tmp_path / "profile") as page:
        for engine, scheme in (("onnx", "light"), ("tfjs", "dark")):
            page.prefer(scheme)
            page.open(f"{address}/index.html?engine={engine}&backend=cpu")
            for digit, points in DRAWN.items():
                answer = read_by(page, points)
                assert answer["engine"] == engine
                image = np.array(answer["values"], np.float32).reshape(1, 8, 8)
                expected = jax.jit(example.read)(params, image)["probabilities"][0]
                np.testing.assert_allclose(answer["probabilities"], expected, atol=1e-4)
                assert np.argmax(expected) == digit
        assert page.problems == []


def read_by(page, points):
    """What the page says of a drawing, after it was cleared."""
    page.evaluate("document.getElementById('clear').click(); window.answer = null")
    page.evaluate(
        f"""(() => {{
          const sheet = document.getElementById("sheet"), box = sheet.getBoundingClientRect();
          {json.dumps(points)}.forEach(([x, y], i) => sheet.dispatchEvent(
            new PointerEvent(i ? "pointermove" : "pointerdown", {{
              bubbles: true, clientX: box.left + x * box.width, clientY: box.top + y * box.height,
            }})));
          sheet.dispatchEvent(new PointerEvent("pointerup", {{ bubbles: true }}));
        }})()"""
    )
    page.wait("window.answer")
    return page.evaluate("window.answer")


@contextlib.contextmanager
def served(folder):
    """The address of a server of the folder, on this machine."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def shown(browser, folder):
    """The rows and columns that the page says it has found."""
    with served(folder) as address:
        page = f"{address}/index.html?backend=cpu"
        options = "--headless --no-sandbox --disable-gpu --virtual-time-budget=30000 --dump-dom"
        done = subprocess.run(
            [browser, *options.split(), page], capture_output=True, text=True, check=True
        )
    rows = re.findall(r"<tr><td>\w+</td><td>(.*?)</td><td>(.*?)</td></tr>", done.stdout)
    return [list(row) for row in rows]
