"""Processes that answer requests: what they answer, and every way in which they can fail to."""

import os
import sys
import textwrap
import time

import pytest

from harnesses.engine.consumers.service import Service, ServiceError

# A process that answers each request with what the body does, which ends by calling answer().
PROGRAM = """
import json, os, sys, time

def answer(reply):
    print(reply if isinstance(reply, str) else json.dumps(reply), flush=True)

for line in sys.stdin:
    request = json.loads(line)
{body}
"""


@pytest.fixture
def service():
    started = []

    def start(body, timeout=20.0):
        program = PROGRAM.format(body=textwrap.indent(textwrap.dedent(body), "    "))
        started.append(Service("the engine", [sys.executable, "-S", "-c", program], timeout))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_one_process_answers_all_requests(service):
    echo = service('answer({"value": [request, os.getpid()]})')
    first, process = echo.ask({"x": [1, None]})
    assert first == {"x": [1, None]}
    assert echo.ask("a\nb") == ["a\nb", process]


def test_a_problem_is_raised_and_leaves_the_process(service):
    process = service("""
        answer({"problem": "no such op"} if request == "bad" else {"value": os.getpid()})
    """)
    before = process.ask("good")
    with pytest.raises(ServiceError, match=r"^no such op$"):
        process.ask("bad")
    assert process.ask("good") == before


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit(7)", "the engine ended with status 7$"),
        ("sys.exit('out of\\nmemory\\n')", "the engine ended with status 1: memory$"),
        ("os.kill(os.getpid(), 9)", "the engine ended with status -9$"),
        ("sys.stdout.write('{\"value\"'); sys.stdout.flush(); sys.exit(0)", "with status 0$"),
        ("answer('warning: slow')", "the engine gave an answer that is none: 'warning: slow"),
        ("answer('\\xff' * 1000)", "the engine gave an answer that is none: "),
        ("answer([1])", "the engine gave an answer that is none"),
        ("answer({'value': 1, 'problem': 'it is'})", "the engine gave an answer that is none"),
        ("answer({})", "the engine gave an answer that is none"),
    ],
)
def test_a_process_that_fails_is_replaced(service, body, words):
    failing = service(
        f"if request == 'fail':\n    {body}\nelse:\n    answer({{'value': os.getpid()}})"
    )
    before = failing.ask("work")
    with pytest.raises(ServiceError, match=words):
        failing.ask("fail")
    assert not _is_running(before)
    assert failing.ask("work") != before


def test_a_process_that_hangs_is_ended(service):
    hanging = service(
        """
        if request == "hang":
            time.sleep(600)
        answer({"value": os.getpid()})
        """,
        timeout=2.0,
    )
    before, start = hanging.ask("work"), time.monotonic()
    with pytest.raises(ServiceError, match="the engine gave no answer in 2 s"):
        hanging.ask("hang")
    assert time.monotonic() - start < 30
    assert not _is_running(before)
    assert hanging.ask("work") != before


def test_a_process_that_does_not_read_is_ended(service):
    deaf = Service("the engine", [sys.executable, "-S", "-c", "import time; time.sleep(600)"], 1.0)
    # More than a pipe holds.
    with pytest.raises(ServiceError, match="the engine gave no answer in 1 s"):
        deaf.ask("x" * 10_000_000)


def test_a_process_that_ended_between_requests(service):
    ending = service("answer({'value': os.getpid()}); sys.exit(3)")
    ending.ask("first")
    with pytest.raises(ServiceError, match="the engine ended with status 3"):
        ending.ask("x" * 10_000_000)


def test_closing_ends_the_process(service):
    closing = service("answer({'value': os.getpid()})")
    process = closing.ask(None)
    closing.close()
    assert not _is_running(process)
    closing.close()


def _is_running(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
