"""What an exception on the device means, and how to keep it from spreading.

Told apart by class name and words, so that the policy needs no torch: `torch.OutOfMemoryError` and
`torch.AcceleratorError` are both RuntimeErrors, and only the second ends the device's context.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

FATAL_CLASSES = frozenset({"AcceleratorError"})
FATAL_WORDS = re.compile(
    r"CUDA error|device-side assert|cudaError|illegal memory access|uncorrectable ECC",
    re.IGNORECASE,
)


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def is_fatal(error: BaseException) -> bool:
    """Whether the device is lost to this process: nothing but a restart helps."""
    if is_out_of_memory(error):
        return False
    names = {cls.__name__ for cls in type(error).__mro__}
    return bool(names & FATAL_CLASSES) or (
        isinstance(error, RuntimeError) and FATAL_WORDS.search(str(error)) is not None
    )


def run_isolated(
    items: Sequence[Item],
    work: Callable[[Sequence[Item]], Result],
    on_failure: Callable[[Item, Exception], None],
) -> list[Result]:
    """Do work on all items at once; if that fails, on halves, down to the item at fault.

    So a poisoned row fails alone, and a batch too large for the memory left is split. `work` must
    change nothing when it raises. Fatal errors are raised.
    """
    if not items:
        return []
    try:
        return [work(items)]
    except Exception as error:
        if is_fatal(error):
            raise
        if len(items) == 1:
            logger.exception("A row failed alone")
            on_failure(items[0], error)
            return []
        logger.warning("A batch of %d failed with %s: halved", len(items), type(error).__name__)
    middle = len(items) // 2
    return [
        *run_isolated(items[:middle], work, on_failure),
        *run_isolated(items[middle:], work, on_failure),
    ]
