import io
import struct
import subprocess
import wave

import numpy as np
import pytest
import soundfile

from chattts_api.audio.encoder import CONTENT_TYPES, encode_whole, open_encoder
from chattts_api.errors import GenerationFailedError
from tests.audio.tones import RATE, ffmpeg_decode, pieces, rms, similarity, speechlike, uneven

formats = pytest.mark.parametrize("audio_format", list(CONTENT_TYPES))
MAGIC = {
    "mp3": (b"\xff\xf3", b"\xff\xfb"),
    "aac": (b"\xff\xf1",),
    "opus": (b"OggS",),
    "flac": (b"fLaC",),
    "wav": (b"RIFF",),
}
# Codec delay and the padding of the last frame; with 3.000 s in, 3.048 s of mp3, 3.072 s of aac.
EXTRA_S = {"mp3": 0.075, "aac": 0.13}
RATES = [8000, 16000, 22050, 24000, 44100, 48000]


def stream(samples, audio_format, *, size=480, **options):
    encoder = open_encoder(audio_format, **options)
    return b"".join([*(encoder.encode(p) for p in pieces(samples, size)), encoder.finish()])


def heard(data, audio_format, rate=RATE, file_rate=RATE):
    raw = ("-f", "s16le", "-ar", str(file_rate), "-ac", "1") if audio_format == "pcm" else ()
    samples, complaints = ffmpeg_decode(data, rate=rate, input_options=raw)
    # A WAV of unknown size ends, to ffmpeg, in the middle of something.
    assert not complaints or (audio_format == "wav" and "corrupt" in complaints)
    return samples


@formats
@pytest.mark.parametrize("seconds", [0.02, 0.5, 3.0])
def test_another_program_hears_all_of_a_stream(audio_format, seconds):
    sound = speechlike(seconds)
    data = stream(sound, audio_format)
    assert audio_format == "pcm" or data.startswith(MAGIC[audio_format])
    out = heard(data, audio_format)
    extra = len(out) / RATE - seconds
    assert -0.001 <= extra <= EXTRA_S.get(audio_format, 0.001)
    if seconds > 1:
        assert similarity(out, sound) > 0.99


@formats
def test_the_tail_is_not_cut_off(audio_format):
    sound = speechlike(2.0) * 0.01
    sound[-2400:] = 0.5 * np.sin(2 * np.pi * 500 * np.arange(2400) / RATE)
    for data in (stream(sound, audio_format), encode_whole(sound, audio_format)):
        tail = heard(data, audio_format)[len(sound) - 2400 :]
        assert np.sum(tail**2) == pytest.approx(np.sum(sound[-2400:] ** 2), rel=0.1)


@formats
def test_how_a_stream_is_cut_changes_no_byte(audio_format):
    sound = speechlike(1.3)
    encoder = open_encoder(audio_format, sample_rate=16_000)
    odd = b"".join([*(encoder.encode(p) for p in uneven(sound)), encoder.finish()])
    assert odd == stream(sound, audio_format, size=10**6, sample_rate=16_000)


@formats
def test_whole_and_streamed_sound_the_same(audio_format):
    sound = speechlike(1.7)
    whole = heard(encode_whole(iter(pieces(sound, 5000)), audio_format), audio_format)
    streamed = heard(stream(sound, audio_format), audio_format)
    assert abs(len(whole) / RATE - 1.7) <= {"aac": 0.1, "mp3": 0.01}.get(audio_format, 0.001)
    # A whole mp3 tells its delay, so the decoder takes it off.
    delay = len(streamed) - len(whole) if audio_format == "mp3" else 0
    best = max(similarity(streamed[d:], whole) for d in {0, 1105, delay})
    assert best > 0.999


@pytest.mark.parametrize(
    ("audio_format", "limit_ms"),
    [("pcm", 20), ("wav", 20), ("opus", 60), ("mp3", 80), ("aac", 100), ("flac", 120)],
)
def test_the_first_sound_leaves_early(audio_format, limit_ms):
    encoder = open_encoder(audio_format)
    header = 0
    for number, piece in enumerate(pieces(speechlike(1.0), 480), start=1):
        data = encoder.encode(piece)
        if number == 1 and audio_format in {"opus", "flac"}:  # the container's own pages
            header, data = len(data), b""
        if data:
            break
    assert number * 20 <= limit_ms
    assert header == 0 or header < 10_000


@formats
@pytest.mark.parametrize("rate", RATES)
def test_every_sample_rate_is_written(audio_format, rate):
    sound = speechlike(0.8)
    for data in (
        stream(sound, audio_format, sample_rate=rate),
        encode_whole(sound, audio_format, sample_rate=rate),
    ):
        out = heard(data, audio_format, file_rate=rate)
        delay_s = {"mp3": 2500 / rate, "aac": 2500 / rate}.get(audio_format, 0) + 0.002
        assert -0.002 <= len(out) / RATE - 0.8 <= delay_s
        if audio_format in {"wav", "flac", "opus"}:
            info = soundfile.info(io.BytesIO(data))
            assert info.samplerate == (48_000 if audio_format == "opus" else rate)
            assert info.channels == 1


def test_a_streamed_wav_has_the_canonical_header():
    sound = speechlike(0.5)
    data = stream(sound, "wav")
    assert data[:44] == struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", 0xFFFFFFFF, b"WAVE", b"fmt ", 16, 1, 1, 24000, 48000, 2, 16),
        *(b"data", 0xFFFFFFFF),
    )
    assert data[44:] == stream(sound, "pcm")
    with wave.open(io.BytesIO(data[:2048])) as file:  # a client that reads the beginning only
        assert file.getframerate() == 24_000
    samples, rate = soundfile.read(io.BytesIO(data), dtype="int16")
    assert rate == 24_000
    assert samples.tobytes() == data[44:]


def test_a_whole_wav_has_exact_sizes_and_its_data_at_44():
    sound = speechlike(0.5)
    data = encode_whole(sound, "wav")
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    assert struct.unpack("<4sI", data[36:44]) == (b"data", 24_000)
    assert data[44 : 44 + 24_000] == stream(sound, "pcm")
    with wave.open(io.BytesIO(data)) as file:
        assert file.getnframes() == 12_000
    assert len(encode_whole(sound, "wav", metadata={})) == 44 + 24_000


def test_a_streamed_mp3_is_frames_and_nothing_else():
    data = stream(speechlike(1.0), "mp3")
    position = num_frames = 0
    rates = (None, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
    while position < len(data):
        head = data[position : position + 4]
        assert head[:2] == b"\xff\xf3"  # MPEG-2, layer III
        position += 72 * rates[head[2] >> 4] * 1000 // 24_000 + (head[2] >> 1 & 1)
        num_frames += 1
    assert position == len(data)
    assert num_frames * 576 / RATE == pytest.approx(1.0, abs=0.075)
    assert not any(tag in data for tag in (b"Xing", b"Info", b"ID3", b"TAG"))


def test_joined_mp3_bodies_are_one_mp3():
    first, second = speechlike(0.7), speechlike(0.9, seed=1)
    out = heard(stream(first, "mp3") + stream(second, "mp3"), "mp3")
    assert len(out) / RATE == pytest.approx(1.6 + 0.12, abs=0.06)
    assert similarity(out[round(0.72 * RATE) :], second) > 0.99


@pytest.mark.parametrize("audio_format", ["mp3", "flac", "wav", "opus"])
def test_a_whole_file_knows_its_duration(audio_format, tmp_path):
    path = tmp_path / f"speech.{audio_format}"
    path.write_bytes(encode_whole(speechlike(2.5), audio_format))
    assert soundfile.info(path).duration == pytest.approx(2.5, abs=0.06)


@pytest.mark.parametrize("audio_format", ["mp3", "flac", "wav", "opus"])
def test_a_whole_file_says_that_it_is_synthetic(audio_format, tmp_path):
    path = tmp_path / f"speech.{audio_format}"
    path.write_bytes(encode_whole(speechlike(0.5), audio_format))
    command = ["ffprobe", "-v", "error", "-show_entries", "format_tags:stream_tags", str(path)]
    tags = subprocess.run(command, capture_output=True, timeout=30, check=True).stdout.decode()
    assert "Synthetic speech" in tags
    assert "computer" in tags
    bare = encode_whole(speechlike(0.5), audio_format, metadata={})
    assert b"ynthetic" not in bare


@pytest.mark.parametrize("audio_format", ["flac", "opus"])
def test_streamed_comments_say_it_too(audio_format):
    assert b"Synthetic speech" in stream(speechlike(0.2), audio_format)
    assert b"Mine" in stream(speechlike(0.2), audio_format, metadata={"title": "Mine"})


@formats
def test_too_loud_is_clipped_never_wrapped(audio_format):
    sound = 3 * speechlike(0.5, peak=1.0)
    out = heard(stream(sound, audio_format), audio_format)
    assert 0.9 < np.abs(out).max() < 1.3
    pcm = np.frombuffer(stream(sound, "pcm"), "<i2")
    assert pcm.max() <= 32767
    assert pcm.min() >= -32767
    assert np.all(np.sign(pcm[np.abs(sound) > 0.01]) == np.sign(sound[np.abs(sound) > 0.01]))


@formats
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_broken_samples_are_an_error_not_noise(audio_format, value):
    sound = speechlike(0.1)
    sound[1000] = value
    encoder = open_encoder(audio_format)
    with pytest.raises(GenerationFailedError):
        encoder.encode(sound)


@formats
def test_five_minutes_in_one_call(audio_format):
    sound = np.tile(speechlike(1.0), 300)
    encoder = open_encoder(audio_format)
    data = encoder.encode(sound) + encoder.finish()
    out = heard(data, audio_format, rate=8000)
    assert len(out) / 8000 == pytest.approx(300, abs=0.15)
    assert rms(out[-4000:]) > 0.05


@formats
def test_no_sound_is_still_a_file(audio_format):
    encoder = open_encoder(audio_format)
    assert isinstance(encoder.encode(np.zeros(0, np.float32)) + encoder.finish(), bytes)
    assert isinstance(encode_whole([], audio_format), bytes)


def test_pcm_pieces_are_whole_samples():
    encoder = open_encoder("pcm", sample_rate=22_050)
    sizes = [len(encoder.encode(p)) for p in uneven(speechlike(1.0))] + [len(encoder.finish())]
    assert all(size % 2 == 0 for size in sizes)
    assert sum(sizes) == 2 * 22_050
