"""Temporary views of a materialisation that show its newest version.

A view of Spark is a plan, and a plan reads one version. So views are made again, those of the relations that an update has changed.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from evermat.core import check_session
from evermat.runtime.pin import Pin
from evermat.runtime.relation import Relation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLOSED = "the materialisation of this view is closed"


@dataclass
class _Made:
    """The views of one session with one prefix."""

    session: weakref.ref[Any]
    prefix: str
    names: dict[str, str] = field(default_factory=dict)  # in SQL, by relation


def make_views(pin: Pin, spark: SparkSession, prefix: str) -> dict[str, str]:
    """Makes every relation of a version a temporary view; returns the names of the views by relation."""
    check_session("spark", spark)
    from evermat.spark import create_views

    return create_views({name: _frame(pin, name, spark) for name in pin.names()}, prefix)


def _frame(pin: Pin, name: str, spark: SparkSession) -> Any:
    return Relation(name, lambda: pin).to_spark(spark)


class CurrentViews:
    """Views that follow a materialisation until it is closed, or their session is stopped.

    It does not refer to the materialisation, and keeps no session.
    """

    def __init__(self) -> None:
        self._made: list[_Made] = []
        self._lock = Lock()

    def create(self, pin: Pin, spark: SparkSession, prefix: str) -> dict[str, str]:
        """Makes the views of a session, or makes them again."""
        with self._lock:
            names = make_views(pin, spark, prefix)
            self._made = [one for one in self._made if one.session() is not spark or one.prefix != prefix]
            self._made.append(_Made(weakref.ref(spark), prefix, names))
        return names

    @property
    def exist(self) -> bool:
        """Whether any have been made."""
        return bool(self._made)

    def renew(self, pin: Pin, changed: Collection[str] | None = None) -> None:
        """Has the views of changed relations, or of all, show a version; those of a session that is stopped are forgotten.

        An update is committed when this is called: nothing raises an error.
        """
        with self._lock:
            self._made = [one for one in self._made if self._renewed(one, pin, changed)]

    def _renewed(self, made: _Made, pin: Pin, changed: Collection[str] | None) -> bool:
        from evermat.spark import create_views, drop_view, replace_view

        spark = made.session()
        if spark is None:
            return False
        try:
            present = list(pin.names())
            if set(present) != made.names.keys():
                for name in made.names.keys() - set(present):
                    drop_view(spark, made.names[name])
                made.names = create_views({name: _frame(pin, name, spark) for name in present}, made.prefix)
                return True
            for name in present if changed is None else changed:
                replace_view(_frame(pin, name, spark), made.names[name])
        except Exception:  # noqa: BLE001  # its session is stopped, or cannot take the facts: they have no view any more
            self._end(made, "this view could not be brought up to date")
            return False
        return True

    def end(self) -> None:
        """Has all views say that they are closed."""
        with self._lock:
            for made in self._made:
                self._end(made, _CLOSED)
            self._made = []

    def _end(self, made: _Made, why: str) -> None:
        from evermat.spark import end_view

        spark = made.session()
        if spark is None:
            return
        try:
            for view in made.names.values():
                end_view(spark, view, why)
        except Exception:  # noqa: BLE001  # a session that is stopped has no views
            return
