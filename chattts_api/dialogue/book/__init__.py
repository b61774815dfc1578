"""Books as chapters: plain text, Markdown, subtitles and EPUB."""
