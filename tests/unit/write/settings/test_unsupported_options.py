"""Options of writes that name Java classes."""

import pytest

from pyhudi.config import Options
from pyhudi.errors import OptionWithoutEffectWarning
from pyhudi.write.settings.unsupported_options import check_unsupported_options


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.avro.write.support.class",
        "hoodie.parquet.spark.row.write.support.class",
        "hoodie.fileid.prefix.provider.class",
        "hoodie.write.merge.handle.class",
        "hoodie.write.concat.handle.class",
        "hoodie.compact.merge.handle.class",
        "hoodie.record.size.estimator.class",
        "hoodie.storage.layout.partitioner.class",
        "hoodie.storage.class",
        "hoodie.io.factory.class",
        "hoodie.writestatus.class",
        "hoodie.compaction.plan.generator",
        "hoodie.bootstrap.full.input.provider",
        "hoodie.client.init.callback.classes",
    ],
)
def test_java_classes_that_have_no_effect(key, recwarn):
    with pytest.warns(OptionWithoutEffectWarning, match=f"{key}=org.example.Mine has no effect: .*Java class"):
        check_unsupported_options(Options.parse({key: "org.example.Mine"}))
    recwarn.clear()
    if not key.endswith("classes"):
        check_unsupported_options(Options.parse({key: "org.apache.hudi.io.HoodieWriteMergeHandle"}))
    check_unsupported_options(Options.parse({key: " "}))
    assert not recwarn
