"""Converters that do not end in TensorFlow: what the judge says of right and of wrong ones."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from harnesses.engine.adapter import check_exists
from harnesses.engine.converters import SHIPPED, ConverterError
from harnesses.engine.matrix import Matrix
from harnesses.engine.options import TargetError
from limitations import ledger

ROOT = Path(__file__).parents[2]
FAKES = "tests.judge.fake_converters"


@pytest.fixture
def judged(tmp_path, parsed):
    """Runs one cell against a fake (or another converter) with an empty ledger."""

    def run(impl, *arguments, name="jit_float32"):
        impl = impl if impl in SHIPPED else f"{FAKES}:{impl}"
        options = parsed(
            f"--impl={impl}",
            f"--ledger={tmp_path}",
            f"--results={tmp_path / 'rows.jsonl'}",
            f"--name={name}",
            *arguments,
        )
        matrix = Matrix(options, "main")
        (cell,) = matrix.cells.values()
        try:
            row, problem = matrix.run(cell)
        finally:
            matrix.close()
        return row, problem, matrix.command(cell)

    return run


def test_a_right_one_passes_without_a_mode(judged):
    row, problem, command = judged("Right")
    assert problem is None
    assert (row["outcome"], row["lowering"], row["mode"]) == ("pass", "direct", "direct")
    assert row["tensorflow"] is None
    assert re.fullmatch(r"jax \d+\.\d+.*", row["impl_versions"])
    assert "--mode" not in command
    assert "--lowering" not in command
    assert f"--impl {FAKES}:Right" in command


@pytest.mark.parametrize(
    ("fake", "outcome", "phase", "message"),
    [
        ("Wrong", "mismatch", None, "ULPs of float32 away"),
        ("Refusing", "error", "lower", "no rule for node"),
        ("Running", "error", "run", "no kernel"),
    ],
)
def test_a_wrong_one_is_red(judged, fake, outcome, phase, message):
    row, problem, _ = judged(fake, name="jit_exact_float32")
    assert (row["outcome"], row["phase"], row["verdict"]) == (outcome, phase, "red")
    assert message in row["message"]
    assert "node_17" not in row["message"]
    assert problem is not None


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_would_end_a_process_costs_one_cell(judged, kind):
    row, problem, _ = judged(f"LeavingBy{kind.__name__}", name="jit_bfloat16")
    assert (row["outcome"], row["phase"], row["exception"]) == ("error", "run", kind.__name__)
    assert row["message"] == "enough"
    assert problem is not None


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("float16", "SystemExit"), ("float32", "KeyboardInterrupt"), ("float64", "GeneratorExit")],
)
def test_what_would_end_a_process_while_it_converts(judged, dtype, kind):
    row, problem, _ = judged("LeavingWhileConverting", name=f"remat2_{dtype}")
    assert (row["outcome"], row["phase"], row["exception"]) == ("error", "lower", kind)
    assert problem is not None


def test_ctrl_c_while_a_cell_runs_ends_the_run(judged, monkeypatch):
    monkeypatch.setenv("STOP_THE_RUN", "interrupt")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            judged("Stopping", name="jit_bfloat16")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_one_declines_is_neither_passed_nor_failed(judged):
    row, problem, _ = judged("Modest")
    assert (row["outcome"], row["message"], problem) == (
        "inapplicable",
        "calls are not claimed",
        None,
    )


@pytest.mark.parametrize("impl", ["jax.export", "jax.jit"])
def test_those_of_jax_itself_pass(judged, impl):
    assert judged(impl)[0]["outcome"] == "pass"


def test_a_program_for_several_devices_is_called_on_them(judged):
    row, _, _ = judged("jax.export", name="ppermute_of_two_float32")
    assert row["outcome"] == "pass", row["message"]


def test_a_program_of_a_mesh_says_the_same_whichever_argument_is_elsewhere(judged):
    row, _, _ = judged("jax.jit", name="psum_columns_int32")
    assert row["message"] == "Received incompatible devices for jitted computation"


def test_the_ledger_of_jax_export_is_proved_by_whole_families(tmp_path):
    """Both ways: what fails there is declared, and what is declared of them fails."""
    families = ("callbacks", "calls", "foreign")
    process = subprocess.run(
        [
            *(sys.executable, "-m", "harnesses", "run", "--impl=jax.export", "-n0"),
            *(f"--family={family}" for family in families),
            f"--results={tmp_path / 'rows.jsonl'}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert ", 0 red, 0 did not run; " in process.stdout
    declared = {one.family for one in ledger.load(ledger.FOLDER / "jax.export")}
    assert {"callbacks", "foreign"} <= declared


@pytest.mark.parametrize(
    ("impl", "words"),
    [
        (f"{FAKES}:Nobody", "has no class 'Nobody'"),
        (
            f"{FAKES}:NoConverter",
            "has no class 'NoConverter' that is a harnesses.engine.converters",
        ),
        ("no_such_module:Converter", "no_such_module cannot be imported"),
    ],
)
def test_one_that_is_not_there(impl, words):
    with pytest.raises(ConverterError, match=re.escape(words)):
        check_exists(impl)


@pytest.mark.parametrize("option", ["--mode=eager", "--lowering=xla", "--direction=call_tf"])
def test_what_it_does_not_have_is_refused(judged, option):
    with pytest.raises(TargetError, match=f"Right has one way .* leave out {option[:6]}"):
        judged("Right", option)


def test_every_implementation_has_a_ledger_of_its_own():
    assert ledger.folder_of(None) == ledger.folder_of("jax2tf") == ledger.FOLDER
    assert ledger.folder_of("jax2onnx") == ledger.FOLDER / "jax2onnx"
    assert ledger.folder_of("jax2onnx", "here") == Path("here")


def test_the_command_needs_no_tensorflow_and_begins_a_ledger(tmp_path):
    rows, folder = tmp_path / "rows.jsonl", tmp_path / "ledger"
    blocked = "import sys; sys.modules.update(tensorflow=None); "

    def command(module, *arguments):
        code = f"{blocked}from {module}.__main__ import main; sys.exit(main(sys.argv[1:]))"
        line = [sys.executable, "-c", code, *arguments]
        return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)

    asked = ("run", f"--impl={FAKES}:Refusing", "--name=jit_float32", "-n0")
    first = command("harnesses", *asked, f"--results={rows}", f"--ledger={folder}")
    assert first.returncode == 1, first.stderr
    assert "1 ran (1 error), 1 red" in first.stdout
    reason = ("--reason", "it converts nothing")
    begun = command("limitations", "update", f"--results={rows}", f"--ledger={folder}", *reason)
    assert begun.returncode == 0, begun.stderr
    (entry,) = ledger.load(folder)
    assert (entry.phase, entry.reason) == ("lower", "it converts nothing")
    again = command(
        "harnesses", *asked, f"--results={tmp_path / 'again.jsonl'}", f"--ledger={folder}"
    )
    assert again.returncode == 0, again.stdout


def test_what_a_converter_says_is_the_reason_in_its_ledger(tmp_path):
    rows, folder = tmp_path / "rows.jsonl", tmp_path / "ledger"

    def command(*words):
        line = [sys.executable, "-m", *words, f"--ledger={folder}"]
        return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)

    asked = ("--name=jit_exact_float*", "-n0", f"--results={rows}")
    command("harnesses", "run", f"--impl={FAKES}:Wrong", *asked)
    begun = command("limitations", "update", f"--results={rows}")
    assert "0 need a reason" in begun.stdout, begun.stdout + begun.stderr
    reasons = [entry.reason for entry in ledger.load(folder)]
    assert reasons
    assert all(re.match(r"jax \S+: result is \S+ ULPs of float", reason) for reason in reasons)
    assert command("limitations", "check", f"--results={rows}").returncode == 0


@pytest.mark.parametrize("impl", [*SHIPPED, "jax.experimental.jax2tf"])
def test_each_that_is_shipped_has_a_ledger(impl):
    """It loads, so each entry has a reason; docs/converters.md says which run each is of."""
    entries = ledger.load(ledger.folder_of(impl))
    assert entries
    assert f"| `limitations/{impl}` |" in (ROOT / "docs" / "converters.md").read_text()


# What the page's class asks of two packages that are not installed here.
STAND_INS = {
    "jax2onnx": """
import jax
from jax import export
class _Model:
    def __init__(self, fun, args): self.data = export.export(jax.jit(fun))(*args).serialize()
    def SerializeToString(self): return self.data
def to_onnx(fun, args, enable_double_precision): return _Model(fun, args)
""",
    "onnxruntime": """
import jax
from types import SimpleNamespace
from jax import export
class InferenceSession:
    def __init__(self, data): self.model = export.deserialize(data)
    def get_inputs(self):
        return [SimpleNamespace(name=str(i)) for i, _ in enumerate(self.model.in_avals)]
    def run(self, names, feed): return jax.tree.leaves(self.model.call(*feed.values()))
""",
}


def test_the_class_of_the_page_is_judged_by_the_line_of_the_page(tmp_path):
    page = (ROOT / "docs" / "converters.md").read_text()
    code = textwrap.dedent(re.search(r"run:\n\n((?:    .*\n|\n)+)", page).group(1)).strip()
    assert len([line for line in code.splitlines() if line]) <= 20
    (tmp_path / "my_converter.py").write_text(code.replace('("jax2onnx", "onnxruntime")', "()"))
    for name, text in STAND_INS.items():
        (tmp_path / f"{name}.py").write_text(text)
    line = re.search(r"python -m (harnesses run --impl my_converter:MyConverter) --family", page)
    asked = (*line.group(1).split(), "--name=jit_float*", f"--results={tmp_path / 'rows.jsonl'}")
    process = subprocess.run(
        [sys.executable, "-m", *asked, "-n0"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert re.search(r"^[1-9]\d* cells asked for, .* 0 red, 0 did not run", process.stdout, re.M)
