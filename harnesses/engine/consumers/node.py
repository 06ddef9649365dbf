"""Node.js, which runs programs of this folder."""

import shutil
import subprocess
from pathlib import Path


def lack(package: str) -> str | None:
    """What is missing for a program here that needs the package; None if nothing is."""
    if shutil.which("node") is None:
        return "there is no program node on the path"
    found = subprocess.run(
        ["node", "--eval", f"require.resolve({package!r}, {{paths: ['.']}})"],
        cwd=Path(__file__).parent,
        capture_output=True,
    )
    if found.returncode:
        return f"node finds no package {package} (environment variable NODE_PATH)"
    return None
