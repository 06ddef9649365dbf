"""Which of TensorFlow's ops an engine takes, found by trying: `python -m harnesses probe TARGET`.

    names.py        what ops are tried in
    probe.py        one use of an op: its arguments, and the values they are tried with
    catalogue/      the uses of every op that graphs are made of
    trial.py        one use in one engine: does it take it, and does it give TensorFlow's numbers
    worker.py       a process that tries uses, and may end by one
    probing.py      the uses of a target in worker processes; the table that comes of it
    table.py        the table as a file, and what two tables differ in

The tables are part of the implementation: they lie in its folder `op_tables`, from which its
targets read what an engine lacks.
"""
