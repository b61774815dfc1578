"""One linear layer, in the form that this device multiplies best."""

from collections.abc import Callable
from typing import Any, Final, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

_MIN_ROWS: Final = 2


class PackedLinear:
    """x [N, in] -> x @ weight.T + bias [N, out], through GELU where asked.

    On x86 CPUs the weight is held in oneDNN's blocked form: half the time of the plain product at
    1 to 32 rows, and a row's result has the same bits whatever the number of rows, as long as
    there are two (one row alone would take a kernel that splits long sums). The plain product of
    other platforms may round differently with the number of rows.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        activation: Literal["none", "gelu"] = "none",
    ) -> None:
        self._bias = bias
        self._activation = activation
        self._is_packed = _can_pack(weight)
        self._weight: Tensor = (
            _mkldnn("_reorder_linear_weight")(weight, None) if self._is_packed else weight
        )

    def __call__(self, x: Tensor) -> Tensor:
        if not self._is_packed:
            y = F.linear(x, self._weight, self._bias)
            return F.gelu(y) if self._activation == "gelu" else y
        if x.shape[0] >= _MIN_ROWS:
            return self._multiply(x)
        return self._multiply(x.expand(_MIN_ROWS, -1))[:1]

    def _multiply(self, x: Tensor) -> Tensor:
        product: Tensor = _mkldnn("_linear_pointwise")(
            x, self._weight, self._bias, self._activation, [], "none"
        )
        return product


def _can_pack(weight: Tensor) -> bool:
    if weight.device.type != "cpu" or not torch._C._has_mkldnn:  # noqa: SLF001
        return False
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    if weight.dtype is torch.bfloat16:
        return bool(_mkldnn("_is_mkldnn_bf16_supported")())
    return weight.dtype is torch.float32


def _mkldnn(name: str) -> Callable[..., Any]:
    """An operator that torch's own compiler calls, pinned with torch's version."""
    operator: Callable[..., Any] = getattr(torch.ops.mkldnn, name)
    return operator
