"""Which calls of kernels let other threads run.

A kernel works on arrays only, so that other threads could use the interpreter meanwhile. But to release its lock and to get it again costs
more than a short kernel takes: another thread has to be woken, and keeps the lock for as long as `sys.getswitchinterval()` says. Beside threads that
always have something to do, an update of hundreds of short kernels would wait for them hundreds of times. So each call decides, by how much there is to do.

The decision is made in what numba generates around a kernel for calls from Python. The kernel itself is compiled once, and calls of kernels by
kernels stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.callconv import CPUCallConv
from numba.core.compiler import Compiler
from numba.core.cpu import CPUContext

#: from how many steps on other threads may run: where a step takes some ten nanoseconds, as one that looks up a tuple does
FEW = 1 << 11
#: where it takes about one, as one that copies a value does
MANY = 1 << 15


class _Convention(CPUCallConv):  # type: ignore[misc]  # numba has no types
    """Calls a kernel, without the interpreter's lock if there is much to do."""

    def call_function(
        self, builder: Any, callee: Any, result: Any, given: Any, arguments: Any, attrs: Any = None
    ) -> Any:
        context = self.context
        api = context.get_python_api(builder)
        saved = cgutils.alloca_once_value(builder, ir.Constant(api.voidptr, None))
        steps = _steps(context, builder, given, arguments, context.measured)
        with builder.if_then(builder.icmp_signed(">=", steps, ir.Constant(steps.type, context.least))):
            builder.store(api.save_thread(), saved)
        found = super().call_function(builder, callee, result, given, arguments, attrs)
        state = builder.load(saved)
        with builder.if_then(cgutils.is_not_null(builder, state)):
            api.restore_thread(state)
        return found


def _steps(context: Any, builder: Any, given: Any, arguments: Any, measured: Sequence[int]) -> Any:
    """How much there is to do: the elements of all arrays; or of one; or a number, or what lies between two."""
    if not measured:
        arrays = [number for number, type_ in enumerate(given) if isinstance(type_, types.Array)]
        steps: Any = ir.Constant(ir.IntType(64), 0)
        for number in arrays:
            steps = builder.add(steps, _size(context, builder, given, arguments, number))
        return steps
    last = _size(context, builder, given, arguments, measured[-1])
    return last if len(measured) == 1 else builder.sub(last, arguments[measured[0]])


def _size(context: Any, builder: Any, given: Any, arguments: Any, number: int) -> Any:
    type_, value = given[number], arguments[number]
    return context.make_array(type_)(context, builder, value).nitems if isinstance(type_, types.Array) else value


class _Context(CPUContext):  # type: ignore[misc]
    """What numba generates calls from Python in."""

    measured: Sequence[int]
    least: int

    @property
    def call_conv(self) -> Any:
        return _Convention(self)


class _KernelContext(CPUContext):  # type: ignore[misc]
    """What numba generates a kernel in."""

    measured: Sequence[int]
    least: int

    def create_cpython_wrapper(
        self, library: Any, fndesc: Any, env: Any, call_helper: Any, release_gil: bool = False
    ) -> None:
        """Generates the calls from Python."""
        del release_gil
        context = self.subtarget()
        context.__class__ = _Context
        CPUContext.create_cpython_wrapper(context, library, fndesc, env, call_helper)


def letting_others_run(function: Any, steps: str, least: int) -> type[Compiler]:
    """The compiler for a kernel whose calls let other threads run from so many steps on.

    `steps` is the name of an argument, the number of steps or an array with an element for each; or `first:end`. If it is empty, these are
    the elements of all arrays.
    """
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    measured_ = tuple(names.index(name) for name in steps.split(":") if name)

    class KernelCompiler(Compiler):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, *others: Any) -> None:
            context = target.subtarget()
            context.__class__ = _KernelContext
            context.measured, context.least = measured_, least
            super().__init__(typing, context, *others)

    return KernelCompiler
