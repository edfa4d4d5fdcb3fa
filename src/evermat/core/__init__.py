"""The foundation: imports the standard library only, and every floor may import it.

All errors are an `EvermatError` with `Problem`s, each of a `Kind` from `error_catalogue`, at a `Span` of a `Source`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.core.lazy import lazy_face

if TYPE_CHECKING:
    from evermat.core import error_catalogue
    from evermat.core.arguments import (
        check_facts,
        check_function,
        check_position,
        check_session,
        check_type,
        count_argument,
        integer_argument,
        is_session,
        memory_argument,
        memory_size,
        path_arguments,
        seconds_argument,
        wrong_argument,
        wrong_type,
    )
    from evermat.core.cache_dir import cache_folder, cached_file
    from evermat.core.choices import (
        ANSWER_FORMATS,
        ASSERTED,
        CHANGES_FORMATS,
        ENGINES,
        ENTAILMENTS,
        EQUALITY_MODES,
        INCONSISTENCIES,
        INFERRED,
        KEPT_COUNTERS,
        MATERIALISE_ALGORITHMS,
        PLACEMENTS,
        SAVED_POSITIONS,
        SCHEME_POLICIES,
        UPDATE_ALGORITHMS,
        WHICH,
        AnswerFormat,
        ChangesFormat,
        Choices,
        EngineName,
        Entailment,
        EqualityMode,
        Inconsistency,
        KeptCounters,
        MaterialiseAlgorithm,
        Placement,
        SavedPositions,
        SchemePolicy,
        UpdateAlgorithm,
        Which,
        documented,
    )
    from evermat.core.deferred_signals import (
        Deliver,
        await_completion,
        completing,
        held_back,
        holds_back,
        is_completing,
        uninterrupted,
    )
    from evermat.core.errors import (
        ArgumentError,
        DataError,
        EvermatError,
        Kind,
        LimitError,
        Problem,
        ProgramError,
        ResourceError,
        SandboxError,
        StateError,
        UnknownRelationError,
        collected_errors,
        count_of,
        did_you_mean,
    )
    from evermat.core.lazy import deferred, lazy_face
    from evermat.core.leftovers import forget_leftover, register_leftover, remove_leftovers
    from evermat.core.location import bad_location, local_path, scheme_of, without_secrets
    from evermat.core.memory import available_bytes, free_memory, peak_bytes, resident_bytes
    from evermat.core.pandas_block import allow_pandas, block_pandas
    from evermat.core.problems import Problems, reported
    from evermat.core.process import Process, this_process
    from evermat.core.pull_iterator import pulled
    from evermat.core.sandbox import (
        check_input,
        check_output,
        check_own_files,
        is_sandboxed,
        is_uri,
        library_input,
        make_folder,
        named_at,
        open_input,
        open_output,
        refuse_input,
        refuse_output,
        replace_output,
        sandboxed,
    )
    from evermat.core.source import GENERATED, Source, Span
    from evermat.core.standard_streams import (
        awaiting_reader,
        awaits_reader_since,
        open_standard_streams,
        standard_input,
        standard_output,
    )
    from evermat.core.timing import PhaseTimer
    from evermat.core.traceback_trim import public_class, without_internals
    from evermat.core.watch import (
        LOOK_EVERY,
        Guard,
        Watch,
        ask_for,
        awaited,
        check_stop,
        current_watch,
        forget_notice,
        limit_error,
        noticed_at,
        passed_limit,
        register_stop_check,
        unwatched,
        watched,
        watched_each,
        within_limits,
    )
else:
    __getattr__, __dir__, __all__ = lazy_face(__name__)
