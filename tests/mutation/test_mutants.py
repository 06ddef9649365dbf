"""The faults that are planted: which, how they are named, and how they are chosen."""

import ast
import collections

import pytest

from reports.mutation import mutants

FAULTS = {
    "def f(x):\n    return x + 1": {
        "NumberReplacer": ["return x + 2", "return x + 0"],
        "ReplaceBinaryOperator_Add_Sub": ["return x - 1"],
    },
    "def f(x):\n    if x < y and not z:\n        pass": {
        "ReplaceComparisonOperator_Lt_LtE": ["if x <= y and not z:"],
        "ReplaceComparisonOperator_Lt_GtE": ["if x >= y and not z:"],
        "ReplaceUnaryOperator_Delete_Not": ["if x < y and  z:"],
        "AddNot": ["if not x < y and not z:"],
        "ReplaceAndWithOr": ["if x < y or not z:"],
    },
    "for i in xs:\n    break": {
        "ReplaceBreakWithContinue": ["continue"],
        "ZeroIterationForLoop": ["for i in []:"],
    },
    "@register\ndef f(): pass": {"RemoveDecorator": [""]},
    # What changes nothing that runs.
    "def f(x: int | None, *, y=None) -> a | b: pass": {},
    "@functools.cache\ndef f(): pass": {},
    "zip(a, b, strict=True)": {},
    "def f():\n    'one 1'\n    # 2": {},
}


@pytest.mark.parametrize("source", FAULTS)
def test_faults_of_a_source(source):
    planted = collections.defaultdict(list)
    for mutant in mutants.mutants("some.py", source):
        lines = mutants.diff(mutant, mutants.mutate(mutant, source), source)
        added = [line[1:].strip() for line in lines if line[0] == "+"]
        planted[mutant.operator] += added or [""]
    assert planted == FAULTS[source]


def test_a_mutant_keeps_its_name_while_the_code_around_it_changes():
    source = "class A:\n    def f(self, x):\n        return x + 1, x + 1\n"
    before = mutants.mutants("some.py", source)
    after = mutants.mutants("some.py", f"import b\n\n\n{source}\n\nclass B: pass\n")
    assert [m.name for m in before] == [m.name for m in after]
    assert len({m.name for m in before}) == len(before) == 6
    assert {m.function for m in before} == {"A.f"}
    renamed = mutants.mutants("some.py", source.replace("def f", "def g"))
    assert {m.name for m in before}.isdisjoint(m.name for m in renamed)


def test_a_sample_takes_its_share_of_each_module():
    by_module = {
        "large.py": mutants.mutants("large.py", "x = a + b\n" * 90),
        "small.py": mutants.mutants("small.py", "x = a - b\n" * 9),
        "tiny.py": mutants.mutants("tiny.py", "x = a * b\n"),
        "empty.py": [],
    }
    chosen = mutants.sample(by_module, 20, seed=1)
    counts = collections.Counter(mutant.module for mutant in chosen)
    assert counts == {"large.py": 18, "small.py": 1, "tiny.py": 1}
    assert chosen == mutants.sample(by_module, 20, seed=1)
    assert chosen != mutants.sample(by_module, 20, seed=2)
    assert set(chosen) < set(mutants.sample(by_module, 50, seed=1))
    assert len(mutants.sample(by_module, 1000, seed=1)) == 100


def test_mutants_of_the_implementation_are_python():
    module = "_src/lowering/rules/total_order.py"
    found = mutants.mutants(module)
    assert found
    for mutant in found:
        mutated = mutants.mutate(mutant)
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(mutants.source_of(module)))
