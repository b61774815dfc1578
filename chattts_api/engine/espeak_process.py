"""The built-in voice's process as its owner sees it: started, asked, killed, replaced."""

import json
import struct
import subprocess
import sys
import threading
from pathlib import Path

import espeakng_loader  # type: ignore[import-untyped]
import numpy as np

from chattts_api.engine.espeak_voice import EspeakVoice
from chattts_api.types import Samples

WORKER = Path(__file__).with_name("espeak_worker.py")


class EspeakCrashedError(Exception):
    """The process ended, or was ended because it hung."""


class EspeakProcess:
    """One espeak-ng in a process of its own; used by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.sample_rate = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Raises EspeakCrashedError where espeak-ng cannot start here."""
        command = [
            *(sys.executable, "-I", "-S", str(WORKER)),
            *(espeakng_loader.get_library_path(), espeakng_loader.get_data_path()),
        ]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own script and the loader's paths
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except OSError as error:
            raise EspeakCrashedError(str(error)) from error
        (self.sample_rate,) = struct.unpack("<I", self._receive())

    def speak(self, text: str, language: str, voice: EspeakVoice) -> Samples:
        """The sound of a few words, at `sample_rate`.

        A process that is not there is started, one that dies leaves the next call a fresh one.
        Raises EspeakCrashedError.
        """
        with self._lock:
            if self._process is None:
                self.start()
            request = {
                "text": text,
                "voice": voice.name(language),
                "rate": voice.rate(language),
                "pitch": voice.pitch,
            }
            data = json.dumps(request).encode()
            self._send(struct.pack("<I", len(data)) + data)
            pcm = np.frombuffer(self._receive(), "<i2")
        return pcm.astype(np.float32) / np.float32(32768)

    def close(self) -> None:
        """End the process, at once."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            # What was not sent any more is of no interest to anyone.
            try:
                pipe.close()
            except OSError:
                continue

    def _send(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError as error:
            self.close()
            raise EspeakCrashedError("espeak-ng has ended") from error

    def _receive(self) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        head = self._process.stdout.read(4)
        size = struct.unpack("<I", head)[0] if len(head) == 4 else 0
        data = self._process.stdout.read(size)
        if len(head) < 4 or len(data) < size:
            self.close()
            raise EspeakCrashedError("espeak-ng has ended")
        return data
