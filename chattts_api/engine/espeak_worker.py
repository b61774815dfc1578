"""The process that holds espeak-ng: a script of its own, standard library only.

The library is not thread-safe and not ours: here it can crash or hang and take nobody along.
Requests on standard input: 4 bytes of length, then JSON. Answers on standard output: 4 bytes of
length, then 16-bit samples. It ends when its input does.
"""

import _ctypes
import ctypes
import faulthandler
import json
import os
import signal
import struct
import sys
from typing import BinaryIO

SPEAK_LIMIT_S = 10  # a piece takes milliseconds; one that hangs ends the process

_SYNCHRONOUS = 2  # espeak_AUDIO_OUTPUT: samples go to the callback, nothing is played
_DO_NOT_EXIT = 0x8000
_CHARACTERS = 1  # espeak_POSITION_TYPE
_UTF8 = 1
_RATE, _PITCH = 1, 3  # espeak_PARAMETER

_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


class Espeak:
    """The C library, loaded anew for each utterance.

    It keeps the phase of its flutter and its noise in static variables, which nothing but unloading
    resets: without that, the same words would sound different after others. It takes 0.5 ms.
    """

    def __init__(self, library: str, data: str) -> None:
        self._path = library
        self._data = data.encode()
        self._samples = bytearray()
        self._callback = _Callback(self._receive)  # the library keeps no reference of its own
        self.sample_rate = 0
        self._unload(self._load())

    def speak(self, text: str, voice: str, rate: int, pitch: int) -> bytes:
        self._samples.clear()
        library = self._load()
        if library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise SystemExit(f"espeak-ng has no voice {voice}")
        library.espeak_SetParameter(_RATE, rate, 0)
        library.espeak_SetParameter(_PITCH, pitch, 0)
        data = text.encode()
        size = ctypes.c_size_t(len(data) + 1)
        library.espeak_Synth(data, size, 0, _CHARACTERS, 0, _UTF8, None, None)
        library.espeak_Synchronize()
        self._unload(library)
        return bytes(self._samples)

    def _load(self) -> ctypes.CDLL:
        library = ctypes.CDLL(self._path)
        rate = library.espeak_Initialize(_SYNCHRONOUS, 0, self._data, _DO_NOT_EXIT)
        if rate <= 0:
            raise SystemExit("espeak-ng did not start")
        self.sample_rate = int(rate)
        library.espeak_SetSynthCallback(self._callback)
        return library

    @staticmethod
    def _unload(library: ctypes.CDLL) -> None:
        library.espeak_Terminate()
        unload = getattr(_ctypes, "FreeLibrary" if os.name == "nt" else "dlclose")
        unload(library._handle)  # noqa: SLF001 - ctypes offers no other way

    def _receive(self, samples: "ctypes._Pointer[ctypes.c_short]", count: int, _: object) -> int:
        if samples and count > 0:
            self._samples += ctypes.string_at(samples, count * 2)
        return 0


def serve(espeak: Espeak, requests: BinaryIO, answers: BinaryIO) -> None:
    _send(answers, struct.pack("<I", espeak.sample_rate))
    while len(head := requests.read(4)) == 4:
        request = json.loads(requests.read(struct.unpack("<I", head)[0]))
        faulthandler.dump_traceback_later(SPEAK_LIMIT_S, exit=True)
        sound = espeak.speak(**request)
        faulthandler.cancel_dump_traceback_later()
        _send(answers, sound)


def _send(answers: BinaryIO, data: bytes) -> None:
    answers.write(struct.pack("<I", len(data)) + data)
    answers.flush()


def main() -> None:
    # Ctrl-C reaches the whole group of processes; the parent decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What C code prints must not get among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(Espeak(sys.argv[1], sys.argv[2]), sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
