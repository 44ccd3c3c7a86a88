"""Avro containers as the timeline holds them."""

from __future__ import annotations

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyhudi.errors import FormatError
from pyhudi.format.avro import container

PLAN = {
    "instantToRollback": {"commitTime": "20261121095417305", "action": "commit"},
    "RollbackRequests": [],
    "version": 1,
}


def test_header_has_the_schema_and_no_codec() -> None:
    data = container.write_container(container.load_schema("HoodieRollbackPlan"), [PLAN])
    text = container.schema_json(container.load_schema("HoodieRollbackPlan")).encode()
    head = b"Obj\x01" + b"\x02" + b"\x16avro.schema" + container.encode_long(len(text)) + text + b"\x00"
    assert data.startswith(head)
    assert b"avro.codec" not in data
    sync = data[len(head) : len(head) + 16]
    assert data.endswith(sync)
    assert data.count(sync) == 2


def test_round_trip() -> None:
    schema = container.load_schema("HoodieRollbackPlan")
    read_schema, records = container.read_container(container.write_container(schema, [PLAN]))
    assert read_schema == schema
    assert records == [PLAN]


def test_no_record_is_an_empty_container() -> None:
    assert container.read_container(container.write_container(container.load_schema("HoodieRollbackPlan"), []))[1] == []


def test_reader_schema_resolves_by_name() -> None:
    old, new = container.load_schema("HoodieCommitMetadata.v6"), container.load_schema("HoodieCommitMetadata.v8-v9")
    data = container.write_container(old, [{"extraMetadata": {"schema": "{}"}, "operationType": "UPSERT"}])
    (record,) = container.read_container(data, new)[1]
    assert record["extraMetadata"] == {"schema": "{}"}
    assert record["compacted"] in (None, False)


def test_schemas_are_the_callers_own() -> None:
    container.load_schema("HoodieRollbackPlan")["name"] = "changed"
    assert container.load_schema("HoodieRollbackPlan")["name"] == "HoodieRollbackPlan"


def test_unknown_schema_names_what_there_is() -> None:
    with pytest.raises(FormatError, match=r"'Nope'.*HoodieCleanerPlan"):
        container.load_schema("Nope")


@pytest.mark.parametrize("data", [b"", b"Obj", b"{}", b"PAR1PAR1"])
def test_not_a_container(data: bytes) -> None:
    with pytest.raises(FormatError, match="not an Avro container"):
        container.read_container(data)


def test_every_truncation_is_an_error_or_empty() -> None:
    data = container.write_container(container.load_schema("HoodieRollbackPlan"), [PLAN])
    for end in range(4, len(data)):
        try:
            records = container.read_container(data[:end])[1]
        except FormatError:
            continue
        assert records in ([], [PLAN])


def test_bad_record_says_so() -> None:
    with pytest.raises(FormatError, match="does not match"):
        container.write_container(container.load_schema("HoodieRollbackPlan"), [{"instantToRollback": 7}])


@given(st.integers(-(2**63), 2**63 - 1))
def test_encode_long_equals_fastavro(value: int) -> None:
    assert container.encode_long(value) == container.encode_datum('{"type":"long"}', value)  # type: ignore[arg-type]


def test_decode_record_refuses_rest() -> None:
    data = container.encode_datum(container.load_schema("HoodieRollbackPlan"), PLAN)
    assert container.decode_datum(container.load_schema("HoodieRollbackPlan"), data) == PLAN
    with pytest.raises(FormatError, match="ends after"):
        container.decode_datum(container.load_schema("HoodieRollbackPlan"), data + b"\x00")


def test_fastavro_reads_what_we_write() -> None:
    import io

    data = container.write_container(container.load_schema("HoodieRollbackPlan"), [PLAN, PLAN])
    assert list(fastavro.reader(io.BytesIO(data))) == [PLAN, PLAN]
