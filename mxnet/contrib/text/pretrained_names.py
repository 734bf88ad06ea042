"""Names of the embedding files that Stanford (GloVe) and Facebook (fastText) published."""

from __future__ import annotations

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

# Languages whose vectors lie in one common space.
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
