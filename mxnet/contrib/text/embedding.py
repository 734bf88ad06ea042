"""Token embeddings from text files: GloVe, fastText, custom and composite."""

from __future__ import annotations

import shutil
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from ... import ndarray as nd
from ...error import MXNetError, did_you_mean
from ...formats.atomic import replacing
from ...gluon.utils import download, repository_addresses
from ...util import is_np_array
from . import vocab

__all__ = [
    "CompositeEmbedding",
    "CustomEmbedding",
    "FastText",
    "GloVe",
    "create",
    "get_pretrained_file_names",
    "register",
]

GLOVE = (
    "glove.42B.300d.txt",
    *(f"glove.6B.{size}d.txt" for size in (50, 100, 200, 300)),
    "glove.840B.300d.txt",
    *(f"glove.twitter.27B.{size}d.txt" for size in (25, 50, 100, 200)),
)

# SHA-1 hashes of the archives, each of which may hold files of several sizes.
GLOVE_ARCHIVES = {
    "glove.42B.300d.zip": "f8e722b39578f776927465b71b231bae2ae8776a",
    "glove.6B.zip": "b64e54f1877d2f735bdd000c1d7d771e25c7dfdc",
    "glove.840B.300d.zip": "8084fbacc2dee3b1fd1ca4cc534cbfff3519ed0d",
    "glove.twitter.27B.zip": "dce69c404025a8312c323197347695e81fd529fc",
}

# Codes of Wikipedia's languages.
_LANGUAGES = """
aa ab ace ady af ak als am an ang ar arc arz as ast av ay az azb ba bar bat_smg bcl be bg bh bi
bjn bm bn bo bpy br bs bug bxr ca cbk_zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy
da de diq dsb dv dz ee el eml en eo es et eu ext fa ff fi fiu_vro fj fo fr frp frr fur fy ga gag
gan gd gl glk gn gom got gu gv ha hak haw he hi hif ho hr hsb ht hu hy hz ia id ie ig ii ik ilo io
is it iu ja jam jbo jv ka kaa kab kbd kg ki kj kk kl km kn ko koi kr krc ks ksh ku kv kw ky la lad
lb lbe lez lg li lij lmo ln lo lrc lt ltg lv mai map_bms mdf mg mh mhr mi min mk ml mn mo mr mrj
ms mt mus mwl my myv mzn na nah nap nds nds_nl ne new ng nl nn no nov nrm nso nv ny oc olo om or
os pa pag pam pap pcd pdc pfl pi pih pl pms pnb pnt ps pt qu rm rmy rn ro roa_rup roa_tara ru rue
rw sa sah sc scn sco sd se sg sh si simple sk sl sm sn so sq sr srn ss st stq su sv sw szl ta tcy
te tet tg th ti tk tl tn to tpi tr ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war
wo wuu xal xh xmf yi yo za zea zh zh_classical zh_min_nan zh_yue zu
"""

# Languages with aligned vectors.
_ALIGNED = """
ar bg ca cs da de el en es et fi fr he hr hu id it mk nl no pl pt ro ru sk sl sv tr uk vi
"""

FASTTEXT = (
    "crawl-300d-2M.vec",
    "wiki-news-300d-1M.vec",
    "wiki-news-300d-1M-subword.vec",
    *(f"wiki.{code}.vec" for code in _LANGUAGES.split()),
    *(f"wiki.multi.{code}.vec" for code in _ALIGNED.split()),
)


Class = TypeVar("Class", bound=type)
_kinds: dict[str, type] = {}


def register(embedding_cls: Class) -> Class:
    """Register a class of embeddings under its name in lower case, for `create`.

    Parameters
    ----------
    embedding_cls
        The class.

    >>> @mx.contrib.text.embedding.register
    ... class Letters(mx.contrib.text.embedding.CustomEmbedding): ...
    """
    _kinds[embedding_cls.__name__.lower()] = embedding_cls
    return embedding_cls


def create(embedding_name: str, **kwargs: Any) -> Any:
    """Create an embedding by the name of its class; other arguments are passed to it.

    Parameters
    ----------
    embedding_name
        Name of the class.

    >>> mx.contrib.text.embedding.create(
    ...     "glove", pretrained_file_name="vectors.txt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    KeyError: "Cannot find pretrained file vectors.txt for token embedding glove...
    """
    kind = _kinds.get(embedding_name.lower())
    if kind is None:
        raise AssertionError(
            f"{embedding_name} is not registered. Please register with token embedding.register "
            f"first. {did_you_mean(embedding_name, _kinds)}".rstrip()
        )
    return kind(**kwargs)


def _names_of(kind: type) -> list[str]:
    """Return the file names of a class; user-defined classes may list them with their SHA-1."""
    own = getattr(kind, "pretrained_file_name_sha1", ())
    return list(getattr(kind, "pretrained_file_names", own))


def get_pretrained_file_names(
    embedding_name: str | None = None,
) -> list[str] | dict[str, list[str]]:
    """Return the known file names of an embedding, or a dict of those of all.

    Parameters
    ----------
    embedding_name
        Name of the class; None means all.

    >>> mx.contrib.text.embedding.get_pretrained_file_names("glove")[1]
    'glove.6B.50d.txt'
    """
    if embedding_name is None:
        return {name: _names_of(kind) for name, kind in _kinds.items() if _names_of(kind)}
    kind = _kinds.get(embedding_name.lower())
    if kind is None:
        raise KeyError(
            f"Cannot find `embedding_name` {embedding_name}. Use "
            "`get_pretrained_file_names(embedding_name=None).keys()` to get all the valid "
            "embedding names."
        )
    return _names_of(kind)


class _TokenEmbedding(vocab.Vocabulary):
    """A vocabulary with a vector for every token, the rows of `idx_to_vec`."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._vec_len = 0
        self._idx_to_vec: Any = None

    # -- making -------------------------------------------------------------------------------

    @classmethod
    def _check_pretrained_file_names(cls, pretrained_file_name: str) -> None:
        names, kind = _names_of(cls), cls.__name__.lower()
        if pretrained_file_name not in names:
            raise KeyError(
                f"Cannot find pretrained file {pretrained_file_name} for token embedding {kind}. "
                f"{did_you_mean(pretrained_file_name, names)} Valid pretrained files are those of "
                f"get_pretrained_file_names({kind!r})."
            )

    @classmethod
    def _get_pretrained_file(cls, embedding_root: str, pretrained_file_name: str) -> str:
        """Return the path of a file of the class, downloaded if it is missing."""
        cls._check_pretrained_file_names(pretrained_file_name)
        kind = cls.__name__.lower()
        path = Path(embedding_root).expanduser() / kind / pretrained_file_name
        if not path.is_file():
            addresses = repository_addresses(f"gluon/embeddings/{kind}/{pretrained_file_name}")
            sha1 = getattr(cls, "pretrained_file_name_sha1", {}).get(pretrained_file_name)
            path.parent.mkdir(parents=True, exist_ok=True)
            download(addresses, path=str(path), sha1_hash=sha1)
        return str(path)

    def _load_embedding(
        self,
        pretrained_file_path: str | Path,
        elem_delim: str,
        init_unknown_vec: Callable[..., Any],
        encoding: str = "utf8",
    ) -> None:
        path = Path(pretrained_file_path).expanduser()
        if not path.is_file():
            raise ValueError(
                "`pretrained_file_path` must be a valid path to the pre-trained token embedding "
                f"file; there is no file {path}."
            )
        vectors: dict[Any, np.ndarray] = {}
        for number, token, vector in _read(path, elem_delim, encoding):
            if token in vectors:
                warnings.warn(
                    f"At line {number} of the pre-trained token embedding file: the embedding "
                    f"vector for token {token} has been loaded and a duplicate embedding for the "
                    "same token is seen and skipped.",
                    stacklevel=4,
                )
            else:
                vectors[token] = vector
        if not vectors:
            raise ValueError(f"The token embedding file {path} has no vectors.")
        self._take(vectors, init_unknown_vec)

    def _take(self, vectors: dict[Any, np.ndarray], init_unknown_vec: Callable[..., Any]) -> None:
        self._vec_len = len(next(iter(vectors.values())))
        unknown = vectors.pop(self.unknown_token, None)
        if unknown is None:
            unknown = init_unknown_vec(shape=self.vec_len).asnumpy()
        special = len(self)  # the unknown token and reserved ones
        rows = [vectors.pop(token, unknown) for token in self.idx_to_token[1:]]
        self._idx_to_token += vectors
        for index in range(special, len(self)):
            self._token_to_idx[self._idx_to_token[index]] = index
        self._idx_to_vec = _array(np.stack([unknown, *rows, *vectors.values()]))

    def _build_embedding_for_vocabulary(self, vocabulary: vocab.Vocabulary | None) -> None:
        if vocabulary is None:
            return
        if not isinstance(vocabulary, vocab.Vocabulary):
            raise AssertionError(
                "The argument `vocabulary` must be an instance of "
                "mxnet.contrib.text.vocab.Vocabulary."
            )
        self._set_idx_to_vec_by_embeddings([self], vocabulary)
        self._index_tokens_from_vocabulary(vocabulary)

    def _index_tokens_from_vocabulary(self, vocabulary: vocab.Vocabulary) -> None:
        self._token_to_idx = vocabulary.token_to_idx.copy()
        self._idx_to_token = vocabulary.idx_to_token[:]
        self._unknown_token = vocabulary.unknown_token
        reserved = vocabulary.reserved_tokens
        self._reserved_tokens = None if reserved is None else reserved[:]

    def _set_idx_to_vec_by_embeddings(
        self, token_embeddings: Sequence[_TokenEmbedding], vocabulary: vocab.Vocabulary
    ) -> None:
        # The first token is the vocabulary's unknown one, whose name differs between embeddings.
        parts = [
            each.idx_to_vec.asnumpy()[
                [0, *cast("list[int]", each.to_indices(vocabulary.idx_to_token[1:]))]
            ]
            for each in token_embeddings
        ]
        self._vec_len = sum(each.vec_len for each in token_embeddings)
        self._idx_to_vec = _array(np.concatenate(parts, axis=1))

    # -- using --------------------------------------------------------------------------------

    @property
    def vec_len(self) -> int:
        """The size of the vectors."""
        return self._vec_len

    @property
    def idx_to_vec(self) -> Any:
        """The vectors of all tokens, one per row."""
        return self._idx_to_vec

    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> Any:
        """Return the vector of a token, or a row for each in a list.

        Parameters
        ----------
        tokens : str or list of str
        lower_case_backup : bool
            Whether to look up the lowercase form of a missing token.
        """
        single = not isinstance(tokens, list)
        expected = [tokens] if single else tokens
        if lower_case_backup:
            expected = [t if t in self.token_to_idx else t.lower() for t in expected]
        rows = self.idx_to_vec.asnumpy()[self.to_indices(expected)]
        return _array(rows[0] if single else rows)

    def update_token_vectors(self, tokens: Any, new_vectors: Any) -> None:
        """Set the vectors of tokens, one per row of `new_vectors`."""
        if self.idx_to_vec is None:
            raise AssertionError("The property `idx_to_vec` has not been properly set.")
        single = not isinstance(tokens, list) or len(tokens) == 1
        dims = (1, 2) if single else (2,)
        if not isinstance(new_vectors, nd.NDArray) or new_vectors.ndim not in dims:
            raise AssertionError(
                "`new_vectors` must be a 1-D or 2-D NDArray if `tokens` is a singleton."
                if single
                else "`new_vectors` must be a 2-D NDArray if `tokens` is a list of several strings."
            )
        expected = tokens if isinstance(tokens, list) else [tokens]
        rows = new_vectors.asnumpy()
        rows = rows[None] if rows.ndim == 1 else rows
        if rows.shape != (len(expected), self.vec_len):
            raise AssertionError(
                "The length of new_vectors must be equal to the number of tokens and the width of "
                "new_vectors must be equal to the dimension of embeddings of the glossary: "
                f"{(len(expected), self.vec_len)} is needed, {rows.shape} is given."
            )
        for token in expected:
            if token not in self.token_to_idx:
                raise ValueError(
                    f"Token {token} is unknown. To update the embedding vector for an unknown "
                    "token, please specify it explicitly as the `unknown_token` "
                    f"{self.unknown_token} in `tokens`. This is to avoid unintended updates."
                )
        whole = self.idx_to_vec.asnumpy()
        whole[self.to_indices(expected)] = rows
        self._idx_to_vec[:] = _array(whole)


def _array(values: np.ndarray) -> Any:
    array = nd.array(values, dtype="float32")
    return array.as_np_ndarray() if is_np_array() else array


def _read(path: Path, elem_delim: str, encoding: str) -> Iterator[tuple[int, str, np.ndarray]]:
    size = None
    with path.open(encoding=encoding) as file:
        for number, line in enumerate(file, start=1):
            token, *elements = line.rstrip().split(elem_delim)
            if not elements:
                raise AssertionError(
                    f"At line {number} of the pre-trained text embedding file: the data format of "
                    f"the pre-trained token embedding file {path} is unexpected."
                )
            vector = np.array([float(each) for each in elements], dtype="float32")
            if len(vector) == 1:
                warnings.warn(
                    f"At line {number} of the pre-trained text embedding file: token {token} with "
                    f"1-dimensional vector {vector.tolist()} is likely a header and is skipped.",
                    stacklevel=5,
                )
                continue
            size = len(vector) if size is None else size
            if len(vector) != size:
                raise AssertionError(
                    f"At line {number} of the pre-trained token embedding file: the dimension of "
                    f"token {token} is {len(vector)} but the dimension of previous tokens is "
                    f"{size}. Dimensions of all the tokens must be the same."
                )
            yield number, token, vector


def _fetch_member(addresses: list[str], sha1: str | None, target: Path) -> None:
    """Extract one file of a zip archive to `target` atomically."""
    with tempfile.TemporaryDirectory() as scratch:
        archive = download(addresses, path=f"{scratch}/archive.zip", sha1_hash=sha1, retries=0)
        with zipfile.ZipFile(archive) as packed, packed.open(target.name) as member:
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as file:
                shutil.copyfileobj(member, file)


class _PublishedEmbedding(_TokenEmbedding):
    """A published embedding, whose files are in a folder with the embedding's name."""

    pretrained_file_names: tuple[str, ...] = ()
    archive_sha1: ClassVar[Mapping[str, str]] = {}  # SHA-1 of known files
    source = ""
    mirror = ""  # address of a folder that holds the same archives

    def __init__(
        self,
        pretrained_file_name: str,
        embedding_root: str,
        init_unknown_vec: Callable[..., Any],
        vocabulary: vocab.Vocabulary | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        path = self._file(pretrained_file_name, embedding_root)
        self._load_embedding(path, " ", init_unknown_vec)
        self._build_embedding_for_vocabulary(vocabulary)

    @classmethod
    def _file(cls, name: str, root: str) -> Path:
        kind = cls.__name__.lower()
        path = Path(root).expanduser() / kind / name
        if path.is_file():
            return path
        cls._check_pretrained_file_names(name)
        archive = cls._archive(name)
        others = [cls.mirror + archive] if cls.mirror else []
        addresses = repository_addresses(f"gluon/embeddings/{kind}/{archive}", *others)
        try:
            _fetch_member(addresses, cls.archive_sha1.get(archive), path)
        except (OSError, KeyError, MXNetError, zipfile.BadZipFile) as error:
            raise FileNotFoundError(
                f"{path} does not exist, and it could not be fetched ({error}). Put "
                f"the file there (it is published at {cls.source}), set a mirror (an address or a "
                "folder) in MXNET_GLUON_REPO, or load it from another path with CustomEmbedding."
            ) from error
        return path

    @classmethod
    def _archive(cls, name: str) -> str:
        return f"{Path(name).stem}.zip"


@register
class GloVe(_PublishedEmbedding):
    """Vectors by GloVe, read from a file in `<embedding_root>/glove`.

    Parameters
    ----------
    pretrained_file_name : str
        Name of the file.
    embedding_root : str
        Folder of the embedding files.
    init_unknown_vec
        Function from `shape` to the vector of the unknown token.
    vocabulary
        Vocabulary to restrict the embedding to; by default all tokens.

    >>> words = mx.contrib.text.embedding.GloVe("glove.6B.50d.txt")  # doctest: +SKIP
    """

    pretrained_file_names = GLOVE
    archive_sha1: ClassVar[Mapping[str, str]] = GLOVE_ARCHIVES
    source = "https://nlp.stanford.edu/projects/glove"
    mirror = "https://nlp.stanford.edu/data/"

    @classmethod
    def _archive(cls, name: str) -> str:
        return next(a for a in cls.archive_sha1 if name.startswith(a.removesuffix("zip")))

    def __init__(
        self,
        pretrained_file_name: str = "glove.840B.300d.txt",
        embedding_root: str = "~/.mxnet/embeddings",
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: vocab.Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, **kwargs
        )


@register
class FastText(_PublishedEmbedding):
    """Vectors by fastText, read from a file in `<embedding_root>/fasttext`.

    Parameters
    ----------
    pretrained_file_name : str
        Name of the file.
    embedding_root : str
        Folder of the embedding files.
    init_unknown_vec
        Function from `shape` to the vector of the unknown token.
    vocabulary
        Vocabulary to restrict the embedding to; by default all tokens.

    >>> words = mx.contrib.text.embedding.FastText("wiki.simple.vec")  # doctest: +SKIP
    """

    pretrained_file_names = FASTTEXT
    source = "https://fasttext.cc"

    def __init__(
        self,
        pretrained_file_name: str = "wiki.simple.vec",
        embedding_root: str = "~/.mxnet/embeddings",
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: vocab.Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            pretrained_file_name, embedding_root, init_unknown_vec, vocabulary, **kwargs
        )


class CustomEmbedding(_TokenEmbedding):
    """Vectors from your own file, with one token and its vector on each line.

    Parameters
    ----------
    pretrained_file_path : str
        Path of the file.
    elem_delim : str
        Delimiter of token and numbers.
    encoding : str
        Encoding of the file.
    init_unknown_vec
        Function from `shape` to the vector of the unknown token.
    vocabulary
        Vocabulary to restrict the embedding to; by default all tokens.

    >>> import pathlib
    >>> _ = pathlib.Path("vectors.txt").write_text("a 1 2")
    >>> mx.contrib.text.embedding.CustomEmbedding("vectors.txt").get_vecs_by_tokens("a").asnumpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(
        self,
        pretrained_file_path: str,
        elem_delim: str = " ",
        encoding: str = "utf8",
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: vocab.Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._load_embedding(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        self._build_embedding_for_vocabulary(vocabulary)


class CompositeEmbedding(_TokenEmbedding):
    """The concatenated vectors of several embeddings, for the tokens of a vocabulary.

    Parameters
    ----------
    vocabulary : Vocabulary
        The tokens, in order.
    token_embeddings
        An embedding, or a list of embeddings.

    >>> import collections, pathlib
    >>> _ = pathlib.Path("vectors.txt").write_text("a 1 2")
    >>> one = mx.contrib.text.embedding.CustomEmbedding("vectors.txt")
    >>> letters = mx.contrib.text.vocab.Vocabulary(collections.Counter("aa"))
    >>> mx.contrib.text.embedding.CompositeEmbedding(letters, [one, one]).vec_len
    4
    """

    def __init__(self, vocabulary: vocab.Vocabulary, token_embeddings: Any) -> None:
        if not isinstance(vocabulary, vocab.Vocabulary):
            raise AssertionError(
                "The argument `vocabulary` must be an instance of "
                "mxnet.contrib.text.vocab.Vocabulary."
            )
        parts = token_embeddings if isinstance(token_embeddings, list) else [token_embeddings]
        if not all(isinstance(each, _TokenEmbedding) for each in parts):
            raise AssertionError(
                "The argument `token_embeddings` must be an embedding or a list of embeddings, "
                "whose vectors are concatenated."
            )
        super().__init__()
        self._index_tokens_from_vocabulary(vocabulary)
        self._set_idx_to_vec_by_embeddings(parts, self)
