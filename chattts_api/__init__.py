"""ChatTTS served: a Gradio playground and an OpenAI-compatible speech API over one engine."""

__version__ = "0.1.0"
