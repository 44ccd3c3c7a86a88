"""The bucket of every row, as a Spark column expression: what `pyhudi.index.hashing` says, computed by Spark itself."""

from __future__ import annotations

from functools import reduce
from operator import add

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from pyhudi.format.columns import PARTITION_PATH, RECORD_KEY
from pyhudi.index.bucketcounts import BucketCounts
from pyhudi.index.bucketing import Bucketing
from pyhudi.keygen import EMPTY_KEY_PART, NULL_KEY_PART, KeySpec

_SHORT = 24
"""Texts of so many ASCII characters are hashed by an expression without loops, which Spark compiles."""
_WORD = 1 << 32
_NON_BMP = 0x10000


def java_hash(text: Column) -> Column:
    """Java's ``String.hashCode`` as an unsigned bigint."""
    short = (F.octet_length(text) <= _SHORT) & (F.octet_length(text) == F.length(text))
    return F.when(short, _hash_of_short(text)).otherwise(_hash_of_any(text))


def bucket_of(spec: KeySpec, bucketing: Bucketing) -> Column:
    """The bucket (int) of a row that has its record key; *spec* is how the key was made."""
    key = F.col(RECORD_KEY)
    looks_named = key.contains(":")
    if not bucketing.splits_any:
        looks_named = looks_named & key.contains(",")
    parsed = _hash_of_parts(key, bucketing)
    whole = _list_hash([key])
    if len(spec.record_fields) == 1:
        # most keys of one field are one value
        hashed = F.when(looks_named, parsed).otherwise(whole)
    else:
        hashed = F.when(_is_clean(key, spec), _list_hash(_values(key, spec, bucketing)))
        hashed = hashed.when(looks_named, parsed).otherwise(whole)
    return F.pmod(hashed.bitwiseAND(F.lit(0x7FFFFFFF)), _count(bucketing.counts)).cast("int")


def _count(counts: BucketCounts) -> Column:
    """The number of buckets of a row's partition."""
    found = F.lit(counts.default)
    for pattern, count in reversed(counts.rules):
        found = F.when(F.col(PARTITION_PATH).rlike(pattern), F.lit(count)).otherwise(found)
    return found


def _hash_of_short(text: Column) -> Column:
    # beyond the beginning of a text there are empty ones, whose code is 0
    terms = [
        F.ascii(F.substring(text, -place, 1)).cast("bigint") * F.lit(pow(31, place - 1, _WORD))
        for place in range(1, _SHORT + 1)
    ]
    return _word(reduce(add, terms))


def _hash_of_any(text: Column) -> Column:
    def step(h: Column, char: Column) -> Column:
        code = F.ascii(char).cast("bigint")
        beyond = code - F.lit(_NON_BMP)
        high = _word(h * 31 + F.shiftright(beyond, 10) + F.lit(0xD800))
        pair = _word(high * 31 + beyond.bitwiseAND(F.lit(0x3FF)) + F.lit(0xDC00))
        return F.when(char == "", h).when(code < _NON_BMP, _word(h * 31 + code)).otherwise(pair)

    return F.aggregate(F.split(text, ""), F.lit(0).cast("bigint"), step)


def _list_hash(values: list[Column]) -> Column:
    """Java's ``List.hashCode`` of texts, unsigned."""
    found = F.lit(1).cast("bigint")
    for value in values:
        found = _word(found * 31 + java_hash(value))
    return found


def _is_clean(key: Column, spec: KeySpec) -> Column:
    """Whether a key of several fields has the separators between and in its parts only, none in values."""
    parts = len(spec.record_fields)
    commas = F.length(key) - F.length(F.translate(key, ",", ""))
    colons = F.length(key) - F.length(F.translate(key, ":", ""))
    return (commas == parts - 1) & (colons == parts)


def _values(key: Column, spec: KeySpec, bucketing: Bucketing) -> list[Column]:
    """The values of the hash fields in a clean key, in the key's order."""
    parts = F.split(key, ",")
    return [
        _value_of(F.substring_index(F.element_at(parts, i + 1), ":", -1))
        for i, name in enumerate(spec.record_fields)
        if name in bucketing.fields
    ]


def _hash_of_parts(key: Column, bucketing: Bucketing) -> Column:
    """The hash of a key that has to be taken apart by its text."""
    parts = F.split(key, ",(?=[^,:]*:)")
    wanted = F.filter(parts, lambda part: F.substring_index(part, ":", 1).isin(*bucketing.fields))

    def step(h: Column, part: Column) -> Column:
        value = part.substr(F.instr(part, ":") + F.lit(1), F.length(part))
        return _word(h * 31 + _hash_of_any(_value_of(value)))

    return F.aggregate(wanted, F.lit(1).cast("bigint"), step)


def _value_of(part: Column) -> Column:
    return F.when(part.isin(NULL_KEY_PART, EMPTY_KEY_PART), F.lit("")).otherwise(part)


def _word(number: Column) -> Column:
    return number.bitwiseAND(F.lit(_WORD - 1))
