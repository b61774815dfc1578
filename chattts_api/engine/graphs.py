"""One function over a batch, captured as a CUDA graph for each batch bucket.

A graph replays fixed addresses: inputs are copied into a bucket's own buffers, padded with rows
that work on a scratch slot, and outputs are read from its buffers. Where nothing is captured (a
CPU) the same buffers and padding are used with a plain call, so that tests see the same code run.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

BatchWork = Callable[[Tensor, Tensor], Tensor]
WARM_UP_CALLS = 3  # lazily made workspaces must exist before a capture


@dataclass(slots=True, eq=False)
class _Bucket:
    ints: Tensor
    floats: Tensor
    flags: Tensor
    graph: torch.cuda.CUDAGraph | None = None


class GraphPool:
    """Calls `work(ints [B, I], floats [B, F]) -> flags [B, ...]` for any B up to the last bucket.

    Args:
        work: tensor work of static shape, without any read-back.
        padding: the ints and floats of a row that may be run at any time without harm.
        buckets: batch sizes, ascending.
        captures: whether to capture graphs (CUDA) or call `work`.
    """

    def __init__(
        self,
        work: BatchWork,
        padding: tuple[Tensor, Tensor],
        buckets: tuple[int, ...],
        *,
        captures: bool,
    ) -> None:
        self._work = work
        self._padding = padding
        self._buckets = buckets
        self._captures = captures
        self._pool: dict[int, _Bucket] = {}

    def __call__(self, ints: Tensor, floats: Tensor) -> Tensor:
        n = len(ints)
        size = next(size for size in self._buckets if size >= n)
        bucket = self._pool.get(size) or self._open(size)
        self._fill(bucket.ints, ints, self._padding[0])
        self._fill(bucket.floats, floats, self._padding[1])
        if bucket.graph is not None:
            bucket.graph.replay()
        else:
            bucket.flags = self._work(bucket.ints, bucket.floats)
        return bucket.flags[:n]

    def _fill(self, buffer: Tensor, rows: Tensor, padding: Tensor) -> None:
        buffer[: len(rows)].copy_(rows, non_blocking=True)
        buffer[len(rows) :] = padding

    def _open(self, size: int) -> _Bucket:
        ints, floats = (row.expand(size, -1).clone() for row in self._padding)
        bucket = self._pool[size] = _Bucket(ints, floats, torch.empty(0))
        if self._captures:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UP_CALLS):
                    self._work(ints, floats)
            torch.cuda.current_stream().wait_stream(side)
            bucket.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(bucket.graph):
                bucket.flags = self._work(ints, floats)
        return bucket
