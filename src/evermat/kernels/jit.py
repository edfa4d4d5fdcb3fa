"""How kernels are compiled: one decorator, one location for the cache, one list of all kernels.

Every kernel names the signatures it is used with. They are compiled on first use, or all at once by
`kernels.warm_up`; a test checks that nothing else is ever compiled.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba.core import caching, event, types
from numba.extending import intrinsic

from evermat.core import cache_folder
from evermat.kernels.interpreter_lock import FEW, letting_others_run

JIT_DISABLED = bool(numba.config.DISABLE_JIT)

#: (dispatcher, signatures) of every kernel, in order of definition
KERNELS: list[tuple[Any, tuple[str, ...]]] = []


def _source_digest() -> str:
    """Names this version of the kernels on this machine.

    numba notices a change of a kernel's own file, but not of a helper in another one, so the sources of all
    kernels together, here and in the rooms of this name on other floors, name the cache folder.
    """
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted([*here.glob("*.py"), *here.parent.glob(f"*/{here.name}/*.py")]):
        digest.update(path.read_bytes())
    versions = (platform.python_version(), np.__version__, numba.__version__, platform.machine())
    cpu = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    digest.update(repr((versions, cpu, numba.config.BOUNDSCHECK)).encode())
    return digest.hexdigest()[:16]


def _find_cache_folder() -> Path | None:
    """A folder that can be written to: below NUMBA_CACHE_DIR if that is set, else in the user's cache; or none."""
    try:
        base = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else cache_folder()
        if base is None:
            return None
        folder = base / f"evermat-kernels-{_source_digest()}"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


CACHE_FOLDER = None if JIT_DISABLED else _find_cache_folder()


def keeps_kernels() -> bool:
    """Whether compiled kernels are kept for later processes."""
    return CACHE_FOLDER is not None


def compiled(
    *signatures: str, steps: str = "", least: int = FEW, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """A numba kernel, cached on disk where possible, whose long calls let other threads run.

    `signatures` lists the argument types it is called with; a helper that only kernels call lists none.
    A call is long that takes `least` steps; see `interpreter_lock.letting_others_run` for `steps`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        if JIT_DISABLED:
            return _interpreted(function)
        # Kernels neither make nor return arrays. Without numba's run-time there are no reference counts, whose
        # atomic operations around calls of helpers cost more than the helpers.
        compiler = letting_others_run(function, steps, least)
        dispatcher = numba.njit(pipeline_class=compiler, _nrt=False, **options)(function)
        if signatures:
            _enable_cache(dispatcher)
            KERNELS.append((dispatcher, signatures))
        return dispatcher

    return decorate


def _enable_cache(dispatcher: Any) -> None:
    if CACHE_FOLDER is None:
        return
    with suppress(OSError, RuntimeError):  # not cacheable here: compiled again in each process
        dispatcher._cache = _OptionalCache(_KernelCache(dispatcher.py_func))  # noqa: SLF001


_NumbaImpl: Any = caching.FunctionCache._impl_class  # noqa: SLF001
_NumbaLocator: Any = _NumbaImpl._locator_classes[0]  # noqa: SLF001  (of the folder in numba's configuration)


class _Locator(_NumbaLocator):  # type: ignore[misc]  # numba has no types
    """Names our folder. numba's configuration is left alone: other users of numba, in any thread, keep their own."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno
        self._cache_path = str(Path(str(CACHE_FOLDER), Path(file).stem))

    def get_source_stamp(self) -> Any:
        """Nothing: the sources name the folder, so that it serves a copy of them elsewhere."""
        return 0

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        """The locator of a kernel, whether or not numba has a folder."""
        return super(_NumbaLocator, cls).from_function(function, file)


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of one kernel, in our folder."""

    class _impl_class(_NumbaImpl):  # type: ignore[misc]  # noqa: N801  (so numba calls it)
        _locator_classes = (_Locator,)


class _OptionalCache:
    """A kernel's cache whose files may be lost or not be writable, as on a full disk: then the kernel is compiled, and not kept."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *arguments: Any) -> Any:
        try:
            return self._cache.load_overload(*arguments)
        except OSError:
            return None

    def save_overload(self, *arguments: Any) -> None:
        with suppress(OSError):
            self._cache.save_overload(*arguments)


class _Watcher(event.Listener):  # type: ignore[misc]  # numba has no types
    """Calls back when a kernel is compiled for the first time, not when it is loaded from the cache."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def on_start(self, event: Any) -> None:
        del event
        self._callback()

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def watching_compilation(callback: Callable[[], None]) -> Iterator[None]:
    """Calls back whenever a kernel has to be compiled within the block."""
    with event.install_listener("numba:compile", _Watcher(callback)):
        yield


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as plain Python, whose integers must wrap as the compiled ones do."""

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return run


if JIT_DISABLED:

    def prefetch(array: Any, index: Any) -> None:
        """Asks for the cache line of the flat element `index` of a C-contiguous array; any index is safe."""

    def publish() -> None:
        """Lets no other thread see what is written after it before it sees all that was written ahead of it."""

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def prefetch(_typing: Any, array: Any, index: Any) -> Any:
        """Asks for the cache line of the flat element `index` of a C-contiguous array; any index is safe."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            element = builder.gep(data, [context.cast(builder, arguments[1], signature.args[1], types.intp)])
            byte = ir.IntType(8).as_pointer()
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
            llvm = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            builder.call(llvm, [builder.bitcast(element, byte), i32(0), i32(3), i32(1)])
            return context.get_dummy_value()

        return types.void(array, index), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def publish(_typing: Any) -> Any:
        """Lets no other thread see what is written after it before it sees all that was written ahead of it."""

        def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            builder.fence("release")
            return context.get_dummy_value()

        return types.void(), generate


if JIT_DISABLED or numba.config.BOUNDSCHECK or sys.byteorder != "little":

    @compiled()
    def load_word(data: Any, at: Any) -> Any:
        """Eight bytes of an array as a number, the first one the lowest. All of them are in the array."""
        word = np.uint64(data[at])
        for i in range(1, 8):
            word |= np.uint64(data[at + i]) << np.uint64(8 * i)
        return word

else:

    @intrinsic  # type: ignore[untyped-decorator]
    def load_word(_typing: Any, data: Any, at: Any) -> Any:
        """Eight bytes of an array as a number, the first one the lowest. All of them are in the array."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            bytes_ = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            first = builder.gep(bytes_, [context.cast(builder, arguments[1], signature.args[1], types.intp)])
            return builder.load(builder.bitcast(first, ir.IntType(64).as_pointer()), align=1)

        return types.uint64(data, at), generate
