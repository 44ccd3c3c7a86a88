"""Operations of a write, as its options request them."""

from __future__ import annotations

import pytest

from pyhudi.config import Options, options
from pyhudi.config.enums import Operation
from pyhudi.write.write_operations import with_operation_of_payload

EMPTY = "org.apache.hudi.common.model.EmptyHoodieRecordPayload"
PAYLOAD, OPERATION = options.PAYLOAD_CLASS.key, options.OPERATION.key


@pytest.mark.parametrize("payload", [EMPTY, "org.apache.hudi.EmptyHoodieRecordPayload"])
@pytest.mark.parametrize("operation", [{}, {OPERATION: "upsert"}])
def test_the_empty_payload_deletes(payload: str, operation: dict[str, str]):
    opts = with_operation_of_payload(Options.parse({"hoodie.table.name": "t", PAYLOAD: payload, **operation}))
    assert opts.get_typed(options.OPERATION) is Operation.DELETE
    assert not opts.is_set(options.PAYLOAD_CLASS)
    assert opts.get_typed(options.TABLE_NAME) == "t"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {PAYLOAD: "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
        {PAYLOAD: EMPTY, OPERATION: "insert"},
    ],
)
def test_other_payloads_and_operations_stay(given: dict[str, str]):
    opts = Options.parse(given)
    assert with_operation_of_payload(opts) is opts
