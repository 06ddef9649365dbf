"""Cells and their rows: what the judge, the ledger and the reports share.

    names      devices, lowerings and modes
    cells      a cell: harness, device, lowering, mode
    outcomes   what does not apply, and who is wrong where two results differ
    rows       the row of results that says so
    origin     when something was seen, and on which commit
    journal    the file of a run, which holds its rows
    pipes      the way out of a command, also where nobody reads its output

Nothing here runs a cell (`harnesses.engine` does) or knows what is declared (`limitations` does).
"""
