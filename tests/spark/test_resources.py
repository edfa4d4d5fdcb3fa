"""Numbers of buckets and budgets of tasks, from the settings of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from evermat.spark.engine import resources
from evermat.spark.engine.resources import TaskBudget, default_buckets, task_memory

_MIB = 1 << 20


class Conf:
    """A session as these functions see it."""

    def __init__(self, **settings: object) -> None:
        self.settings = {f"spark.{name.replace('__', '.')}": str(value) for name, value in settings.items()}
        self.conf = self

    def get(self, name: str, default: Any) -> Any:
        return self.settings.get(name, default)


@pytest.mark.parametrize(
    ("cores", "settings", "buckets"),
    [
        (2, {}, 4),
        (1, {}, 2),
        (10_000, {}, 1024),
        # Executors that are yet to come.
        (2, {"executor__instances": 10, "executor__cores": 4}, 80),
        (2, {"cores__max": 16}, 32),
        (50, {"executor__instances": 10, "executor__cores": 4}, 100),
        (2, {"dynamicAllocation__enabled": "true", "dynamicAllocation__maxExecutors": 20, "executor__cores": 2}, 80),
        (2, {"dynamicAllocation__enabled": "true"}, 64),
        (100, {"dynamicAllocation__enabled": "true", "dynamicAllocation__maxExecutors": 2**31 - 1}, 200),
        (2, {"dynamicAllocation__enabled": "false", "dynamicAllocation__maxExecutors": 20}, 4),
    ],
)
def test_buckets(cores: int, settings: dict[str, Any], buckets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_cores_now", lambda _spark: cores)
    session: Any = Conf(**settings)
    assert default_buckets(session) == buckets


@pytest.mark.parametrize(
    ("settings", "memory"),
    [
        ({"master": "local[4]", "executor__memoryOverhead": "1g"}, None),
        ({"master": "spark://a:7077"}, None),
        ({"master": "spark://a:7077", "executor__memoryOverhead": "1g"}, 1024 * _MIB),
        ({"master": "spark://a:7077", "executor__memoryOverhead": "1g", "executor__cores": 4}, 256 * _MIB),
        ({"master": "yarn"}, 384 * _MIB),
        ({"master": "yarn", "executor__memory": "20g", "executor__cores": 2}, 1024 * _MIB),
        ({"master": "yarn", "executor__memoryOverhead": "800", "executor__cores": 2}, 400 * _MIB),
        ({"master": "yarn", "executor__memory": "20g", "executor__memoryOverheadFactor": "0.5"}, 10240 * _MIB),
        ({"master": "k8s://https://h:443", "executor__memory": "10g"}, 4096 * _MIB),
        ({"master": "yarn", "executor__pyspark__memory": "2g", "executor__cores": 4, "task__cpus": 2}, 1024 * _MIB),
    ],
)
def test_memory_of_tasks(settings: dict[str, Any], memory: int | None) -> None:
    session: Any = Conf(**settings)
    assert task_memory(session) == memory


def test_budgets() -> None:
    assert TaskBudget().of(1000) == TaskBudget().whole(1000) == TaskBudget(64 << 30).of(1000) == 1000
    assert TaskBudget(1 << 30).of(1000) == 250 and TaskBudget(1).of(1000) == 1
    assert TaskBudget(broadcast=10).whole(1000) == 10 and TaskBudget(broadcast=10).of(1000) == 1000
    assert TaskBudget(1 << 30, 999).whole(1000) == 999 and TaskBudget(1 << 30).whole(1000) == 250
