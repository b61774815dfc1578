"""Every error a caller can meet, as exceptions. Raised anywhere, translated once (`api/errors.py`).

ChatTTSError
├── SetupError                    a start that cannot succeed: exit code 3, one line with the remedy
│   └── WeightsError              a model folder or file that cannot be used
└── SpeechError                   has an HTTP status, an OpenAI error type and a code
    ├── InvalidRequestError       400 invalid_value
    │   ├── InvalidJsonError      400 invalid_json
    │   ├── InputTooLongError     400 string_above_max_length
    │   ├── EmptyInputError       400 empty_input
    │   ├── VoiceNotFoundError    400 voice_not_found
    │   ├── InvalidSpeakerError   400 invalid_speaker
    │   └── InvalidAudioError     400 invalid_audio
    ├── InvalidApiKeyError        401 invalid_api_key
    ├── ForbiddenError            403 forbidden
    ├── NotFoundError             404 not_found
    │   └── ModelNotFoundError    404 model_not_found
    ├── MethodNotAllowedError     405 method_not_allowed
    ├── RequestTimeoutError       408 request_timeout
    ├── ConflictError             409 conflict
    ├── ContentTooLargeError      413 content_too_large
    ├── UnsupportedMediaTypeError 415 unsupported_media_type
    ├── RateLimitedError          429 rate_limit_exceeded
    └── ServerError               500 internal
        ├── GenerationFailedError 500 generation_failed
        ├── UnavailableError      503, with Retry-After
        │   ├── OverloadedError   503 overloaded
        │   ├── DrainingError     503 draining
        │   ├── ModelLoadingError 503 model_loading
        │   ├── EngineFailedError 503 engine_failed
        │   └── StorageFullError  503 storage_full
        └── DeadlineExceededError 504 deadline_exceeded

Messages are written for the caller: they never hold the caller's text, a path or another
exception's words.
"""

from typing import ClassVar


class ChatTTSError(Exception):
    """Root of the tree."""


class SetupError(ChatTTSError):
    """The process cannot start. The message names the setting and the remedy."""

    exit_code: ClassVar[int] = 3


class WeightsError(SetupError):
    """A model folder or file is missing, truncated, misshapen or not what it should be."""


class SpeechError(ChatTTSError):
    """An error with a place in the OpenAI envelope.

    Args:
        message: what happened and what to do, for the caller.
        param: the field at fault, if one is.
        retry_after_s: whole seconds after which the same request may succeed.
    """

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str] = "internal"

    def __init__(
        self, message: str, *, param: str | None = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s


class InvalidRequestError(SpeechError):
    status = 400
    type = "invalid_request_error"
    code = "invalid_value"


class InvalidJsonError(InvalidRequestError):
    code = "invalid_json"


class InputTooLongError(InvalidRequestError):
    code = "string_above_max_length"


class EmptyInputError(InvalidRequestError):
    code = "empty_input"


class VoiceNotFoundError(InvalidRequestError):
    code = "voice_not_found"


class InvalidSpeakerError(InvalidRequestError):
    code = "invalid_speaker"


class InvalidAudioError(InvalidRequestError):
    code = "invalid_audio"


class InvalidApiKeyError(SpeechError):
    status = 401
    type = "invalid_request_error"
    code = "invalid_api_key"


class ForbiddenError(SpeechError):
    status = 403
    type = "invalid_request_error"
    code = "forbidden"


class NotFoundError(SpeechError):
    status = 404
    type = "invalid_request_error"
    code = "not_found"


class ModelNotFoundError(NotFoundError):
    code = "model_not_found"


class MethodNotAllowedError(SpeechError):
    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"


class RequestTimeoutError(SpeechError):
    status = 408
    type = "invalid_request_error"
    code = "request_timeout"


class ConflictError(SpeechError):
    status = 409
    type = "invalid_request_error"
    code = "conflict"


class ContentTooLargeError(SpeechError):
    status = 413
    type = "invalid_request_error"
    code = "content_too_large"


class UnsupportedMediaTypeError(SpeechError):
    status = 415
    type = "invalid_request_error"
    code = "unsupported_media_type"


class RateLimitedError(SpeechError):
    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class ServerError(SpeechError):
    pass


class GenerationFailedError(ServerError):
    code = "generation_failed"


class UnavailableError(ServerError):
    status = 503
    code = "overloaded"

    def __init__(
        self, message: str, *, param: str | None = None, retry_after_s: int | None = 1
    ) -> None:
        super().__init__(message, param=param, retry_after_s=retry_after_s)


class OverloadedError(UnavailableError):
    code = "overloaded"


class DrainingError(UnavailableError):
    code = "draining"


class ModelLoadingError(UnavailableError):
    code = "model_loading"


class EngineFailedError(UnavailableError):
    code = "engine_failed"


class StorageFullError(UnavailableError):
    code = "storage_full"


class DeadlineExceededError(ServerError):
    status = 504
    code = "deadline_exceeded"
