"""Vocabularies, embeddings and token counts."""

from __future__ import annotations

import zipfile
from collections import Counter

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import text
from mxnet.contrib.text import embedding
from mxnet.contrib.text.vocab import Vocabulary

COUNTS = Counter(["b", "b", "a", "a", "a", "c", "d", "d", "some"])


class TestCounting:
    SOURCE = " Life is great ! \n life is good . \n"

    def test_count_tokens_from_str(self):
        counted = text.utils.count_tokens_from_str(self.SOURCE)
        assert counted == Counter(
            {"is": 2, "Life": 1, "great": 1, "!": 1, "life": 1, "good": 1, ".": 1}
        )
        assert text.utils.count_tokens_from_str(self.SOURCE, to_lower=True)["life"] == 2

    def test_count_tokens_with_custom_delimiters(self):
        counted = text.utils.count_tokens_from_str("a<td>b<sd>a", "<td>", "<sd>")
        assert counted == Counter({"a": 2, "b": 1})

    def test_counter_to_update(self):
        counter = Counter({"life": 2})
        assert text.utils.count_tokens_from_str("life x", counter_to_update=counter) is counter
        assert counter == Counter({"life": 3, "x": 1})


class TestVocabulary:
    def test_vocabulary_order(self):
        vocab = Vocabulary(COUNTS)
        assert vocab.idx_to_token == ["<unk>", "a", "b", "d", "c", "some"]
        assert vocab.token_to_idx["d"] == 3
        assert (len(vocab), vocab.unknown_token, vocab.reserved_tokens) == (6, "<unk>", None)

    @pytest.mark.parametrize(
        ("options", "tokens"),
        [
            ({"most_freq_count": 2}, ["<unk>", "a", "b"]),
            ({"most_freq_count": 0}, ["<unk>"]),
            ({"min_freq": 2}, ["<unk>", "a", "b", "d"]),
            ({"reserved_tokens": ["<p>", "c"]}, ["<unk>", "<p>", "c", "a", "b", "d", "some"]),
            ({"unknown_token": "a"}, ["a", "b", "d", "c", "some"]),
        ],
    )
    def test_vocabulary_options(self, options, tokens):
        assert Vocabulary(COUNTS, **options).idx_to_token == tokens

    def test_vocabulary_without_a_counter(self):
        assert Vocabulary().idx_to_token == ["<unk>"]

    @pytest.mark.parametrize(
        "options",
        [
            {"min_freq": 0},
            {"reserved_tokens": ["x", "x"]},
            {"reserved_tokens": ["<unk>"]},
            {"counter": ["a"]},
        ],
    )
    def test_invalid_vocabulary_options_raise(self, options):
        with pytest.raises(AssertionError):
            Vocabulary(**{"counter": COUNTS, **options})

    def test_to_indices_and_to_tokens(self):
        vocab = Vocabulary(COUNTS)
        assert vocab.to_indices("a") == 1
        assert vocab.to_indices(["a", "zz"]) == [1, 0]
        assert vocab.to_indices([]) == []
        assert vocab.to_tokens(0) == "<unk>"
        assert vocab.to_tokens([1, 2]) == ["a", "b"]
        for wrong in (99, "a", [1, 99]):
            with pytest.raises(ValueError, match="invalid"):
                vocab.to_tokens(wrong)


@pytest.fixture
def write(tmp_path):
    def written(content: str, name: str = "vectors.txt") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return str(path)

    return written


class TestCustomEmbedding:
    def test_custom_embedding_tokens_and_vectors(self, write):
        made = embedding.CustomEmbedding(write("a 0.5 1\nb 2 3\n"))
        assert made.idx_to_token == ["<unk>", "a", "b"]
        assert made.vec_len == 2
        assert made.idx_to_vec.asnumpy().tolist() == [[0, 0], [0.5, 1], [2, 3]]

    def test_vector_of_the_unknown_token(self, write):
        made = embedding.CustomEmbedding(write("a 1 2\n"), init_unknown_vec=mx.nd.ones)
        assert made.idx_to_vec.asnumpy().tolist() == [[1, 1], [1, 2]]
        made = embedding.CustomEmbedding(write("a 1 2\n<unk> 5 6\n"))
        assert made.idx_to_token == ["<unk>", "a"]
        assert made.idx_to_vec.asnumpy()[0].tolist() == [5, 6]

    def test_reserved_tokens_have_the_unknown_vector(self, write):
        made = embedding.CustomEmbedding(write("a 1 2\n"), reserved_tokens=["p"])
        assert made.idx_to_token == ["<unk>", "p", "a"]
        assert made.idx_to_vec.asnumpy().tolist() == [[0, 0], [0, 0], [1, 2]]

    def test_embedding_of_a_vocabulary(self, write):
        vocab = Vocabulary(Counter(["b", "q"]), unknown_token="UU")
        made = embedding.CustomEmbedding(write("a 5 6\nb 3 4\n<unk> 7 7\n"), vocabulary=vocab)
        assert made.idx_to_token == ["UU", "b", "q"]
        assert made.idx_to_vec.asnumpy().tolist() == [[7, 7], [3, 4], [7, 7]]
        with pytest.raises(AssertionError, match="must be an instance"):
            embedding.CustomEmbedding(write("a 5 6\n"), vocabulary=3)

    def test_embedding_file_delimiters_and_trailing_blanks(self, write):
        assert len(embedding.CustomEmbedding(write("a,5,6\n"), elem_delim=",")) == 2
        assert len(embedding.CustomEmbedding(write("a 5 6 \nb 3 4\n"))) == 3

    def test_duplicates_and_headers_are_skipped(self, write):
        with pytest.warns(UserWarning, match="duplicate embedding"):
            made = embedding.CustomEmbedding(write("a 1 2\na 5 6\n"))
        assert made.idx_to_vec.asnumpy()[1].tolist() == [1, 2]
        with pytest.warns(UserWarning, match="likely a header"):
            made = embedding.CustomEmbedding(write("2 2\na 5 6\n"))
        assert made.idx_to_token == ["<unk>", "a"]

    @pytest.mark.parametrize(
        ("content", "error", "message"),
        [
            ("a 5 6\nq 1 2 3\n", AssertionError, "the dimension of token q is 3"),
            ("a 5 6\n\n", AssertionError, "unexpected"),
            ("a 5 x\n", ValueError, "could not convert"),
            ("", ValueError, "has no vectors"),
        ],
    )
    def test_malformed_embedding_files_raise(self, write, content, error, message):
        with pytest.raises(error, match=message):
            embedding.CustomEmbedding(write(content))

    def test_missing_embedding_file_raises(self):
        with pytest.raises(ValueError, match="must be a valid path"):
            embedding.CustomEmbedding("/no/such/file")

    def test_get_vecs_by_tokens(self, write):
        made = embedding.CustomEmbedding(write("a 0.5 1\nb 2 3\n"))
        assert made.get_vecs_by_tokens("a").shape == (2,)
        rows = made.get_vecs_by_tokens(["b", "A"], lower_case_backup=True)
        assert rows.asnumpy().tolist() == [[2, 3], [0.5, 1]]
        assert made.get_vecs_by_tokens(["A"]).asnumpy().tolist() == [[0, 0]]

    def test_update_token_vectors(self, write):
        made = embedding.CustomEmbedding(write("a 0.5 1\nb 2 3\n"))
        kept = made.idx_to_vec
        made.update_token_vectors("a", mx.nd.array([9, 9]))
        made.update_token_vectors(["b", "<unk>"], mx.nd.array([[1, 2], [7, 7]]))
        assert kept.asnumpy().tolist() == [[7, 7], [9, 9], [1, 2]]
        with pytest.raises(ValueError, match="Token zz is unknown"):
            made.update_token_vectors("zz", mx.nd.array([9, 9]))
        with pytest.raises(AssertionError, match="length of new_vectors"):
            made.update_token_vectors("a", mx.nd.array([9, 9, 9]))
        with pytest.raises(AssertionError, match="must be a"):
            made.update_token_vectors("a", [9, 9])


class TestPublished:
    def test_pretrained_files_are_read_from_the_root_folder(self, write, tmp_path):
        write("a 1 2\n", "glove/glove.6B.50d.txt")
        write("1 2\nb 3 4\n", "fasttext/mine.vec")
        made = embedding.create(
            "GloVe", pretrained_file_name="glove.6B.50d.txt", embedding_root=str(tmp_path)
        )
        assert made.get_vecs_by_tokens("a").asnumpy().tolist() == [1, 2]
        with pytest.warns(UserWarning, match="header"):
            made = embedding.FastText("mine.vec", str(tmp_path))
        assert made.idx_to_token == ["<unk>", "b"]

    def test_archives_are_downloaded_from_the_repository(self, tmp_path, monkeypatch):
        archive = tmp_path / "gluon/embeddings/fasttext/wiki.simple.zip"
        archive.parent.mkdir(parents=True)
        with zipfile.ZipFile(archive, "w") as packed:
            packed.writestr("wiki.simple.vec", "a 1 2\nb 3 4\n")
        monkeypatch.setenv("MXNET_GLUON_REPO", str(tmp_path))
        made = embedding.FastText("wiki.simple.vec", str(tmp_path / "root"))
        assert made.get_vecs_by_tokens("b").asnumpy().tolist() == [3, 4]
        assert (tmp_path / "root/fasttext/wiki.simple.vec").is_file()

    def test_every_glove_file_has_an_archive_with_a_checksum(self):
        archives = {embedding.GloVe._archive(n) for n in embedding.GloVe.pretrained_file_names}
        assert archives == set(embedding.GloVe.archive_sha1)

    def test_missing_pretrained_files_raise(self, tmp_path, monkeypatch):
        monkeypatch.setenv("MXNET_GLUON_REPO", str(tmp_path))
        with pytest.raises(FileNotFoundError, match=r"glove.6B.50d.txt does not exist, and .* Put"):
            embedding.GloVe("glove.6B.50d.txt", str(tmp_path))
        with pytest.raises(KeyError, match=r"Did you mean 'glove.6B.50d.txt'"):
            embedding.GloVe("glove.6B.50d.tx", str(tmp_path))

    def test_pretrained_file_names(self):
        names = embedding.get_pretrained_file_names()
        assert (len(names["glove"]), len(names["fasttext"])) == (10, 327)
        assert "wiki.simple.vec" in embedding.get_pretrained_file_names("fasttext")
        with pytest.raises(KeyError, match="Cannot find `embedding_name`"):
            embedding.get_pretrained_file_names("none")

    def test_embedding_registration(self, write):
        @embedding.register
        class Letters(embedding.CustomEmbedding):
            pass

        path = write("a 1 2\n")
        assert type(embedding.create("letters", pretrained_file_path=path)) is Letters
        with pytest.raises(AssertionError, match="not registered"):
            embedding.create("nothing")


def test_composite_embedding(write):
    first = embedding.CustomEmbedding(write("a 1 2\nb 3 4\n", "1.txt"))
    second = embedding.CustomEmbedding(write("a 5 6\nc 7 8\n", "2.txt"))
    vocab = Vocabulary(Counter("abc"))
    both = embedding.CompositeEmbedding(vocab, [first, second])
    assert both.vec_len == 4
    expected = [[0, 0, 0, 0], [1, 2, 5, 6], [3, 4, 0, 0], [0, 0, 7, 8]]
    np.testing.assert_array_equal(both.idx_to_vec.asnumpy(), expected)
    assert embedding.CompositeEmbedding(vocab, first).vec_len == 2
    with pytest.raises(AssertionError):
        embedding.CompositeEmbedding(vocab, [3])


def test_custom_pretrained_embeddings(tmp_path, monkeypatch):
    folder = tmp_path / "repository" / "gluon" / "embeddings" / "pets"
    folder.mkdir(parents=True)
    (folder / "pets.vec").write_text("cat 1 2\ndog 3 4\n")
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "repository").as_uri())
    monkeypatch.setattr(embedding, "_kinds", dict(embedding._kinds))

    @embedding.register
    class Pets(embedding._TokenEmbedding):
        pretrained_file_name_sha1 = {"pets.vec": None}  # noqa: RUF012 (MXNet's form)

        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            path = Pets._get_pretrained_file(str(tmp_path / "cache"), "pets.vec")
            self._load_embedding(path, " ", mx.nd.zeros)

    assert embedding.get_pretrained_file_names("pets") == ["pets.vec"]
    assert embedding.create("pets").get_vecs_by_tokens("dog").asnumpy().tolist() == [3, 4]
    with pytest.raises(KeyError, match=r"cats\.vec"):
        Pets._check_pretrained_file_names("cats.vec")
