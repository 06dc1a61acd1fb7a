"""What hostile input is drawn from, as strategies of hypothesis."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

SMALLEST, LARGEST = -(10**30), 10**30

SHAPES = (
    (12, 64, 64, 2), (2, 12, 64, 64, 2), (12, 64, 64), (12, 64, 64, 1), (12, 64, 64, 3), (64, 64, 12, 2), (), (0,),
    (2,), (0, 64, 64, 2), (12, 0, 64, 2), (12, 64, 64, 0), (8, 64, 64, 2), (9, 64, 64, 2), (12, 1, 1, 2),
    (12, 63, 65, 2), (1, 1, 1, 1), (0, 12, 64, 64, 2), (1,) * 12, (12, 16, 16, 2), (12, 128, 128, 2),
)  # fmt: skip
DTYPES = (
    "float32", "float64", "float16", "longdouble", "complex64", "int8", "int64", "uint64", "bool", "object", "S4", "U4",
    "M8[s]", "m8[s]", ">f4", "V8", "f4,f4",
)  # fmt: skip
FILLS = (
    "normal", "nan", "one nan", "infinite", "constant", "nearly constant", "zero", "1e30", "1e38", "1e300", "1e-40",
)  # fmt: skip
LAYOUTS = (
    "as it is", "Fortran", "reversed", "strided", "broadcast", "read-only", "masked", "list", "tensor", "memory view",
    "frame",
)  # fmt: skip
TAKERS = ("load", "adapt", "evaluate", "forecast")

ODD = (
    "", " ", ".", "..", "../../etc/passwd", "/", "/etc", "a/../b", "~", "-", "--help", "\0", "a\0b", "\n", "\x1b[31m",
    "\u202e", "é" * 300, "a" * 5000, "CON", "%s%s%n", "$(id)", "{0}", "turning\n", "Turning", "turning ", "nan", "1e9",
    f"turning/pool/id/{10**30}", "../x/pool/id/00001", "a/pool/id/٣", "a/pool/id/²", "./pool/id/1", "a/pool/id/-1",
)  # fmt: skip
TEXTS = st.text(max_size=30) | st.sampled_from(ODD)
NUMBERS = st.one_of(st.integers(SMALLEST, LARGEST), st.floats(), st.sampled_from([10**30, -1, 0, 2**32, 2**63, 1.5]))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda each: st.one_of(st.lists(each, max_size=4), st.dictionaries(TEXTS, each, max_size=4)),
    max_leaves=12,
)
KEYS = (
    "format", "version", "profiles", "trajectories", "checksum", "systems", "normalizers", "mean", "std", "source",
    "order", "coinciding_at_1", "identity", "id", "turning", "model", "pretraining", "sha256", "name", "rejected",
)  # fmt: skip
KNOWN = st.sampled_from(KEYS)
NAMES = (
    "key", "index", "system", "forecaster", "preset", "checkpoint", "study", "profile", "split", "regime", "data",
    "root", "forecaster file",
)  # fmt: skip
FUNCTIONS = (
    "simulate", "load", "load_forecaster", "build", "forecasters.build", "adapt", "adapt", "evaluate", "Normalizer",
    "Normalizer.fit",
)  # fmt: skip
THINGS: tuple[Any, ...] = (
    None, True, b"x", (), [], {}, Path("x"), Path("/"), object, complex(1, 2), {1, 2}, [[]], [None],
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.one_of(
    TEXTS.filter(lambda text: "/" not in text[1:]),  # "owner/name" asks the hub
    NUMBERS,
    st.sampled_from(THINGS),
)
DESCRIPTIONS = st.tuples(*(st.sampled_from(each) for each in (DTYPES, SHAPES, FILLS, LAYOUTS)))
PLAIN = st.tuples(st.sampled_from(("float32", "float64")), st.just(SHAPES[0]), *map(st.sampled_from, (FILLS, LAYOUTS)))
STRATEGIES: dict[str, st.SearchStrategy] = {
    "arrays": st.tuples(st.sampled_from(TAKERS), st.one_of(DESCRIPTIONS, PLAIN)),
    "times": st.lists(st.floats(), min_size=9, max_size=12) | st.permutations([float(each) for each in range(10)]),
    "JSON": st.tuples(
        st.integers(0, 100), JSON | st.dictionaries(KNOWN, JSON | st.dictionaries(KNOWN, JSON), max_size=5)
    ),
    "names": st.tuples(st.sampled_from(NAMES), TEXTS),
    "arguments": st.tuples(st.sampled_from(FUNCTIONS), st.integers(0, 20), VALUES),
}
