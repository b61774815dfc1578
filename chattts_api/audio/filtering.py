"""A chain of libavfilter filters over one mono stream: streaming, whatever the pieces' lengths."""

from collections.abc import Sequence
from fractions import Fraction

import av
import numpy as np
from av.filter import Graph

from chattts_api.types import Samples

NOTHING: Samples = np.zeros(0, np.float32)


class FilterChain:
    """Filters as (name, arguments), applied in order to float32 samples of one rate."""

    def __init__(self, filters: Sequence[tuple[str, str]], sample_rate: int) -> None:
        self._rate = sample_rate
        self._num_pushed = 0
        self._graph = Graph()
        self._graph.threads = 1  # many answers stream at once; none needs a pool of its own
        source = self._graph.add_abuffer(
            sample_rate=sample_rate, format="flt", layout="mono", time_base=Fraction(1, sample_rate)
        )
        nodes = [source, *(self._graph.add(name, arguments) for name, arguments in filters)]
        nodes.append(self._graph.add("abuffersink"))
        self._graph.link_nodes(*nodes)
        self._graph.configure()

    def push(self, samples: Samples) -> Samples:
        if not len(samples):
            return NOTHING
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(samples, np.float32)[None], format="flt", layout="mono"
        )
        frame.sample_rate = self._rate
        frame.time_base = Fraction(1, self._rate)
        frame.pts = self._num_pushed
        self._num_pushed += len(samples)
        self._graph.push(frame)
        return self._pull()

    def flush(self) -> Samples:
        self._graph.push(None)
        return self._pull()

    def _pull(self) -> Samples:
        pieces: list[Samples] = []
        while True:
            try:
                frame = self._graph.pull()
            except (av.BlockingIOError, av.EOFError):
                break
            assert isinstance(frame, av.AudioFrame)
            pieces.append(frame.to_ndarray().reshape(-1).astype(np.float32, copy=False))
        return np.concatenate(pieces) if pieces else NOTHING
