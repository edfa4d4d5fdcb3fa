"""Fuzzing of the compiler: `python -m tests.fuzz.compiler SECONDS [SEED]`, from the top folder of the checkout.

Takes the case programs, changes them (characters, tokens, lines, splices of two programs, sentences of the grammar)
and compiles the result. Whatever the text: there is a program or a `ProgramError`, every problem renders, its place
lies within the text, and it does not take long. What fails is written to `build/fuzz/` in a form that is ready to be
kept in `tests/language/cases/fuzz/`.
"""

from __future__ import annotations

import hashlib
import random
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from evermat.core.error_catalogue import MORE_ERRORS
from evermat.core.errors import ProgramError
from evermat.core.source import Source
from evermat.language.compile import compile_program

CASES = Path(__file__).parents[1] / "language" / "cases"
FOUND = Path("build/fuzz")
SLOW_SECONDS = 5.0
HOPELESS_SECONDS = 20.0

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|<[^<>\s]*>|[A-Za-z_?][A-Za-z0-9_?]*|\d+|:-|<:|\^\^|[<>!]=|\s+|.', re.DOTALL)
_BITS = [
    ".decl",
    ".type",
    ".input",
    ".output",
    ".printsize",
    ".plan",
    ".pragma",
    ".prefix",
    ".comp",
    ".init",
    ".functor",
    ".override",
    ".limitsize",
    ".number_type",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ";",
    ".",
    ":",
    ":-",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "!",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "^^",
    "@en",
    "$",
    "#",
    "|",
    "<:",
    "_",
    '""',
    '"a"',
    '"\\',
    '"',
    "'",
    "`",
    "\\",
    "/*",
    "*/",
    "//",
    "0",
    "1",
    "-1",
    "1u",
    "0x1F",
    "1.5",
    "1e400",
    "9223372036854775808",
    "x",
    "y",
    "z",
    "_x",
    "?v",
    "edge",
    "path",
    "count",
    "sum",
    "min",
    "max",
    "mean",
    "true",
    "false",
    "nil",
    "as",
    "match",
    "contains",
    "cat",
    "substr",
    "strlen",
    "ord",
    "to_number",
    "to_string",
    "land",
    "band",
    "bshl",
    "bnot",
    "lnot",
    "autoinc",
    "range",
    "eqrel",
    "btree",
    "inline",
    "choice-domain",
    "triple",
    "symbol",
    "number",
    "unsigned",
    "float",
    "term",
    "<http://example.org/p>",
    "ex:p",
    "rdf:type",
    "count:edge(x,_)",
    "\ufeff",
    "\x00",
    "é",
    "😀",
    "\r\n",
]


def check(text: str) -> float:
    """Compiles a text and checks what comes of it; hands back the seconds that it took."""
    source = Source("fuzz.dl", text)
    start = time.perf_counter()
    try:
        problems = compile_program(source).warnings
    except ProgramError as error:
        problems = error.problems
        assert problems
        assert str(error)
    for problem in problems:
        rendered = problem.render()
        if problem.kind is MORE_ERRORS:
            continue
        assert problem.span is not None, rendered
        assert 0 <= problem.span.start <= problem.span.end <= len(text), (problem.span, rendered)
        assert "__ANON" not in rendered, rendered
        assert not re.search(r"variable `[^`]*'|variable ``", problem.message), rendered
    return time.perf_counter() - start


def tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


class Mutator:
    """Makes new texts from old ones."""

    def __init__(self, corpus: list[str], seed: int) -> None:
        self.corpus = [text for text in corpus if len(text) < 20_000]
        self.random = random.Random(seed)
        self._ways: list[Callable[[str], str]] = [
            self.characters,
            self.token_edits,
            self.token_edits,
            self.lines,
            self.splice,
            self.repeat,
            self.sentences,
        ]

    def text(self) -> str:
        text = self.random.choice(self.corpus)
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            text = self.random.choice(self._ways)(text)[:20_000]
        return text

    def characters(self, text: str) -> str:
        """Bytes that are no UTF-8 any more become U+FFFD, as an editor would show them."""
        data = bytearray(text.encode())
        for _ in range(self.random.randint(1, 8)):
            at = self.random.randint(0, len(data))
            match self.random.randint(0, 3):
                case 0:
                    data[at:at] = bytes([self.random.randint(0, 255)])
                case 1:
                    del data[at : at + self.random.randint(1, 4)]
                case 2 if at < len(data):
                    data[at] ^= 1 << self.random.randint(0, 7)
                case _:
                    data[at:at] = self.random.choice(b"()[]{}.,;:!\"'\\<>=_@#$\n").to_bytes(1, "big")
        return data.decode("utf-8", errors="replace")

    def token_edits(self, text: str) -> str:
        parts = tokens(text)
        for _ in range(self.random.randint(1, 6)):
            at = self.random.randint(0, len(parts))
            match self.random.randint(0, 4):
                case 0:
                    parts.insert(at, self.random.choice(_BITS))
                case 1:
                    del parts[at : at + self.random.randint(1, 3)]
                case 2 if at < len(parts):
                    parts[at] = self.random.choice(_BITS)
                case 3 if parts:
                    other = self.random.randrange(len(parts))
                    parts.insert(at, parts[other])
                case _ if len(parts) > 1:
                    one, other = self.random.sample(range(len(parts)), 2)
                    parts[one], parts[other] = parts[other], parts[one]
        return "".join(parts)

    def lines(self, text: str) -> str:
        lines = text.split("\n")
        self.random.shuffle(lines) if self.random.random() < 0.3 else lines.pop(self.random.randrange(len(lines)))
        return "\n".join(lines)

    def splice(self, text: str) -> str:
        one, other = tokens(text), tokens(self.random.choice(self.corpus))
        return "".join(one[: self.random.randint(0, len(one))] + other[self.random.randint(0, len(other)) :])

    def repeat(self, text: str) -> str:
        parts = tokens(text)
        at = self.random.randint(0, len(parts))
        piece = parts[at : at + self.random.randint(1, 5)]
        return "".join(parts[:at] + piece * self.random.choice([2, 5, 50, 300]) + parts[at:])

    # --- sentences of the grammar ---

    def sentences(self, text: str) -> str:
        made = "\n".join(self._statement() for _ in range(self.random.randint(1, 12)))
        return made if self.random.random() < 0.5 else f"{text}\n{made}"

    def _statement(self) -> str:
        match self.random.randint(0, 8):
            case 0 | 1:
                columns = ", ".join(
                    f"{self._pick('xyzw')}{n}:{self._pick(self._types)}" for n in range(self.random.randint(0, 3))
                )
                return f".decl {self._pick('abcd')}({columns}){self._pick(['', '', ' eqrel', ' btree', ' inline'])}"
            case 2:
                members = " | ".join(self._pick(self._types) for _ in range(self.random.randint(1, 3)))
                return f".type {self._pick('TUV')} {self._pick(['<:', '='])} {members}"
            case 3:
                return f".{self._pick(['input', 'output', 'printsize'])} {self._pick('abcd')}"
            case 4:
                return f"{self._atom(0)}."
            case _:
                heads = ", ".join(self._atom(1) for _ in range(self.random.choice([1, 1, 1, 2])))
                return f"{heads} :- {self._formula(self.random.randint(0, 3))}."

    _types = ("symbol", "number", "unsigned", "float", "term", "T", "U", "V")

    def _pick(self, choices: str | list[str] | tuple[str, ...]) -> str:
        return self.random.choice(choices)

    def _atom(self, depth: int) -> str:
        return f"{self._pick('abcd')}({', '.join(self._term(depth) for _ in range(self.random.randint(0, 3)))})"

    def _formula(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.3:
            match self.random.randint(0, 6):
                case 0 | 1 | 2:
                    return self._atom(depth)
                case 3:
                    return f"!{self._atom(depth)}"
                case 4:
                    return f"{self._pick(['match', 'contains'])}({self._term(depth)}, {self._term(depth)})"
                case _:
                    operator = self._pick(["=", "=", "!=", "<", "<=", ">", ">="])
                    return f"{self._term(depth)} {operator} {self._term(depth)}"
        parts = [self._formula(depth - 1) for _ in range(self.random.randint(1, 3))]
        return self._pick(["", "!"]) + "(" + self._pick([", ", " ; "]).join(parts) + ")" if len(parts) > 1 else parts[0]

    def _term(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.6:
            return self._pick(["x", "y", "z", "_", '"s"', "1", "2u", "1.5", "<http://example.org/a>", '"t"@en', "-3"])
        match self.random.randint(0, 5):
            case 0 | 1:
                operator = self._pick(["+", "-", "*", "/", "%", "^", "band", "bshl", "lor"])
                return f"({self._term(depth - 1)} {operator} {self._term(depth - 1)})"
            case 2:
                return f"{self._pick(['cat', 'min', 'max', 'ord', 'strlen', 'to_number', 'to_string'])}({self._term(depth - 1)}, y)"
            case 3:
                return f"count : {{ {self._formula(depth - 1)} }}"
            case 4:
                return f"{self._pick(['sum', 'min', 'max', 'mean'])} {self._term(0)} : {{ {self._formula(depth - 1)} }}"
            case _:
                return f"as({self._term(depth - 1)}, {self._pick(self._types)})"


def _give_up(_signal: int, _frame: object) -> None:
    raise TimeoutError


def run(seconds: float, seed: int) -> int:
    """Fuzzes for a while; hands back the number of failures of different kinds."""
    corpus = [path.read_bytes().decode("utf-8", errors="replace") for path in sorted(CASES.rglob("*.dl"))]
    print(f"seed {seed}", flush=True)
    mutator = Mutator(corpus, seed)
    signal.signal(signal.SIGALRM, _give_up)
    end = time.monotonic() + seconds
    executions, slowest, seen = 0, 0.0, set()
    while time.monotonic() < end:
        text = mutator.text()
        executions += 1
        signal.setitimer(signal.ITIMER_REAL, HOPELESS_SECONDS)
        try:
            took = check(text)
            slowest = max(slowest, took)
            failure = f"slow: {took:.1f} s" if took > SLOW_SECONDS else ""
        except Exception as error:
            where = [f for f in traceback.extract_tb(error.__traceback__) if f.name != "_give_up"][-1]
            failure = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if failure and failure.split(": ")[0] not in seen:
            seen.add(failure.split(": ")[0])
            FOUND.mkdir(parents=True, exist_ok=True)
            path = FOUND / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.dl"
            path.write_bytes(text.encode())
            print(f"{failure}: {path}", flush=True)
    print(f"{executions} executions, {len(seen)} kinds of failures, slowest {slowest:.2f} s, seed {seed}")
    return len(seen)


if __name__ == "__main__":
    chosen = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    sys.exit(1 if run(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, chosen) else 0)
