"""The output of a JVM: the configuration of its log, and the relevant line of it."""

from __future__ import annotations

import re

LOGGING = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""

# Lines without a reason.
_REMARKS = (
    "Error: Could not create the Java Virtual Machine",
    "Error: A fatal exception has occurred",
    "Error occurred during initialization of",
    "OpenJDK 64-Bit Server VM warning",
    "WARNING",
    "NOTE:",
    "Picked up",
    "at ",
    "... ",
    "Run with --help",
    "#",
)


def essential_of_log(text: str) -> str:
    """The line with the reason why a JVM did not start or has ended; empty if there is none.

    >>> essential_of_log("Error occurred during initialization of VM" + chr(10) + "Too small maximum heap" + chr(10))
    'Too small maximum heap'
    """
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith(_REMARKS)]
    causes = [line for line in lines if line.startswith("Caused by:")]
    reasons = [line for line in lines if re.search(r"\b\w*(?:Error|Exception)\b", line)]
    line = causes[-1] if causes else (reasons or lines or [""])[0]
    line = re.sub(r"^(?:\d\d:\d\d:\d\d ERROR \w+: |Caused by: |Exception in thread \"[^\"]*\" |Error: )+", "", line)
    return re.sub(r"^(?:[a-z_]\w*\.)+([A-Z]\w*): ", "", line)
