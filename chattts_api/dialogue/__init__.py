"""Several speakers in one file, long books, and batches: built on synthesis, used by api and ui."""
