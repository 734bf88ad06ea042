"""Texts of Wikipedia for language models: `WikiText2` and `WikiText103`."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, ClassVar

import numpy as np

from .... import ndarray
from ...data import dataset
from ...data.fetching import Source, Wanted, dataset_folder, unpacked

__all__ = ["WikiText2", "WikiText103"]

END = "<eos>"


class _WikiText(dataset._DownloadedDataset):
    """Sequences of words, and the same sequences shifted by one word."""

    _namespace: ClassVar[str]
    _archive_file: ClassVar[Wanted]
    _data_file: ClassVar[dict[str, Wanted]]

    def __init__(
        self, root: str | os.PathLike[str], segment: str, vocab: Any, seq_len: int
    ) -> None:
        self._segment = segment
        self._vocab = vocab
        self._seq_len = seq_len
        self._counter: Counter[str] = Counter()
        super().__init__(root, None)

    @property
    def vocabulary(self) -> Any:
        return self._vocab

    @property
    def frequencies(self) -> Counter[str]:
        """The number of occurrences of each word in this segment, without ends of sentences."""
        return self._counter

    def _get_data(self) -> None:
        file = self._data_file[self._segment]
        source = Source(self._root, self._namespace, mirrors=("https://wikitext.smerity.com/",))
        paths = unpacked([file], self._archive_file, source)
        lines = paths[file.name].read_text(encoding="utf-8").split("\n")
        words = [word for line in lines if line.strip() for word in (*line.split(), END)]
        self._counter = Counter(words)
        self._counter.pop(END, None)
        if self._vocab is None:
            from ....contrib.text.vocab import Vocabulary  # lazy import: contrib builds on gluon

            self._vocab = Vocabulary(self._counter, reserved_tokens=[END])
        numbers = np.asarray(self._vocab.to_indices(words), np.int32)
        count = (len(numbers) - 1) // self._seq_len
        used = count * self._seq_len
        self._data, self._label = (
            ndarray.array(part.reshape(count, self._seq_len), dtype="int32")
            for part in (numbers[:used], numbers[1 : used + 1])
        )


class WikiText2(_WikiText):
    """WikiText-2: two million words, as sequences of word indices of equal length.

    A sample is a sequence, and its label the same sequence shifted by one word. A sentence ends
    with ``<eos>``.

    Parameters
    ----------
    root : str
        Folder of the files, such as ``wiki.train.tokens``, or of their archive.
    segment : {'train', 'validation', 'test'}
        Which part: ``'train'``, ``'validation'`` or ``'test'``.
    vocab : Vocabulary
        Vocabulary that maps words to indices; by default built from this segment.
    seq_len : int
        Number of words in a sequence.

    >>> words = mx.gluon.contrib.data.text.WikiText2(seq_len=35)  # doctest: +SKIP
    """

    _namespace = "wikitext-2"
    _archive_file = Wanted("wikitext-2-v1.zip", "3c914d17d80b1459be871a5039ac23e752a53cbe")
    _data_file: ClassVar[dict[str, Wanted]] = {
        "train": Wanted("wiki.train.tokens", "863f29c46ef9d167fff4940ec821195882fe29d1"),
        "validation": Wanted("wiki.valid.tokens", "0418625c8b4da6e4b5c7a0b9e78d4ae8f7ee5422"),
        "test": Wanted("wiki.test.tokens", "c7b8ce0aa086fb34dab808c5c49224211eb2b172"),
    }

    def __init__(
        self,
        root: str | os.PathLike[str] = dataset_folder("wikitext-2"),  # noqa: B008 (read once)
        segment: str = "train",
        vocab: Any = None,
        seq_len: int = 35,
    ) -> None:
        super().__init__(root, segment, vocab, seq_len)


class WikiText103(_WikiText):
    """WikiText-103: a hundred million words; see `WikiText2`.

    Parameters
    ----------
    root
        Folder of the files, such as ``wiki.train.tokens``, or of their archive.
    segment
        Which part: ``'train'``, ``'validation'`` or ``'test'``.
    vocab
        Vocabulary that maps words to indices; by default built from this segment.
    seq_len
        Number of words in a sequence.

    >>> words = mx.gluon.contrib.data.text.WikiText103(seq_len=35)  # doctest: +SKIP
    """

    _namespace = "wikitext-103"
    _archive_file = Wanted("wikitext-103-v1.zip", "0aec09a7537b58d4bb65362fee27650eeaba625a")
    _data_file: ClassVar[dict[str, Wanted]] = {
        "train": Wanted("wiki.train.tokens", "b7497e2dfe77e72cfef5e3dbc61b7b53712ac211"),
        "validation": Wanted("wiki.valid.tokens", "c326ac59dc587676d58c422eb8a03e119582f92b"),
        "test": Wanted("wiki.test.tokens", "8a5befc548865cec54ed4273cf87dbbad60d1e47"),
    }

    def __init__(
        self,
        root: str | os.PathLike[str] = dataset_folder("wikitext-103"),  # noqa: B008 (read once)
        segment: str = "train",
        vocab: Any = None,
        seq_len: int = 35,
    ) -> None:
        super().__init__(root, segment, vocab, seq_len)
