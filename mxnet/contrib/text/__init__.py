"""Text processing: vocabularies, embeddings read from files, counting of tokens."""

from . import embedding, utils, vocab
