"""What is said about databases that Spark reads and writes through JDBC."""

from __future__ import annotations

import re
from collections.abc import Mapping

_NO_DRIVER = re.compile("No suitable driver|ClassNotFoundException")
_HELP = "name the class of the database's driver as `driver`, and give Spark its jar with the setting `spark.jars`"


def database_of(options: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The name of a database for messages, and what in the options of JDBC is secret: texts after `;` or `?`, or before `@`, can be a password."""
    by_name = {key.lower(): value for key, value in options.items()}
    shown = re.sub(r"//[^/@]*@", "//", re.split("[;?]", by_name.get("url", "a database"))[0])
    return shown, tuple(value for key, value in by_name.items() if key in {"password", "url"} and value)


def driver_help(said: str) -> str:
    """What helps if Spark said that there is no driver for a database; otherwise nothing."""
    return _HELP if _NO_DRIVER.search(said) else ""
