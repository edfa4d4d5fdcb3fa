"""A cache of kernels that was made elsewhere: it serves another copy of the sources, and is left alone where it does not fit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evermat

ONE = """
from evermat.columns.kernels import rows
from evermat.columns.kernels.warm_up import _types
from evermat.kernels import jit
kernel, signatures = jit.KERNELS[0]
kernel.compile(_types(signatures[0]))
print(jit.__file__, sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


def compiled_in(sources: Path, cache: Path, cpu: str) -> list[str]:
    """Which file the kernels are from, and how many were in the cache and not."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "NUMBA_CACHE_DIR": str(cache), "NUMBA_CPU_NAME": cpu}
    done = subprocess.run([sys.executable, "-c", ONE], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.slow
def test_a_cache_that_was_shipped(tmp_path: Path) -> None:
    package = Path(evermat.__file__).parent
    assert compiled_in(package.parent, tmp_path / "made", "generic")[1:] == ["0", "1"]
    (tmp_path / "made").rename(tmp_path / "shipped")
    shutil.copytree(package, tmp_path / "node" / "evermat", copy_function=shutil.copyfile)  # with other times
    own = str(tmp_path / "node" / "evermat" / "kernels" / "jit.py")
    assert compiled_in(tmp_path / "node", tmp_path / "shipped", "generic") == [own, "1", "0"]
    changed = tmp_path / "node" / "evermat" / "columns" / "kernels" / "rows.py"
    changed.write_text(changed.read_text() + "\n")  # another version
    assert compiled_in(tmp_path / "node", tmp_path / "shipped", "generic") == [own, "0", "1"]
