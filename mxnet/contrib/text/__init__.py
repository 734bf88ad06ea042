"""Words as numbers and as vectors: vocabularies, embeddings read from files, counting."""

from . import embedding, utils, vocab
