"""Commands find compiled kernels, those in processes of their own too: else the first of them would print more than the others."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _kernels_are_compiled(compiled_kernels: None) -> None:
    """On a new machine the first command would compile them."""
