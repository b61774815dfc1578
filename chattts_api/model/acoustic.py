"""Hidden states to sound: the acoustic decoder and the vocoder."""

import torch
from torch import Tensor

from chattts_api.model.decoder import MelDecoder
from chattts_api.model.vocoder import Vocoder


class TorchAcoustic:
    """Acoustic (interface.py) over plain PyTorch.

    Convolutions may round differently with the number of rows, by about 1e-6 of full scale.
    """

    def __init__(self, decoder: MelDecoder, vocoder: Vocoder) -> None:
        self.decoder = decoder
        self.vocoder = vocoder

    @torch.inference_mode()
    def decode(self, hidden: Tensor) -> Tensor:
        """Hidden [B, T, H], all of one length -> samples [B, (2 T - 1) * 256]."""
        return self.vocoder(self.decoder(hidden.to(self.decoder.coef.dtype)))
