"""Record keys and partition paths by a registered key generator (`pyhudi.KeyGenerator`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pickle import PicklingError

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from pyhudi.config import options
from pyhudi.errors import ConfigError, SchemaMismatchError
from pyhudi.keygen.custom_key_generator import registered_generator
from pyhudi.keygen.key_spec import DEFAULT_PARTITION, KeySpec
from pyhudi.schema.name_resolution import top_column
from pyhudi.spark.column_names import resolve, select_names
from pyhudi.spark.keys.key_errors import key_failure


def registered_record_key(class_name: str, unset_message: str) -> Column:
    """Return the record key that a registered generator makes; evaluation fails where it is null or empty, with a
    message."""
    key = _record_key(class_name)
    return F.when(F.coalesce(key == "", F.lit(True)), key_failure(unset_message)).otherwise(key)


def registered_partition_path(class_name: str) -> Column:
    """Return the partition path that a registered generator makes; the default partition where it is null or empty."""
    path = _partition_path(class_name)
    return F.coalesce(F.when(path != "", path), F.lit(DEFAULT_PARTITION))


def check_registered_generator(df: DataFrame, spec: KeySpec) -> None:
    """Check that the expressions of the generator are strings over the columns that the table declares for them: writes
    know by these which updates change keys and partition paths.

    Raises:
        RecordKeyError: A column of the record key is missing.
        SchemaMismatchError: A column of the partition path is missing.
        ConfigError: The message has the class and the reason.
    """
    if spec.key_class is not None:
        for name in spec.record_fields:
            resolve(df.schema, name, "record key")
        _check_expression(
            df,
            _record_key(spec.key_class),
            spec.record_fields,
            f"{spec.key_class}.record_key",
            options.RECORDKEY_FIELD.key,
        )
    if spec.path_class is not None:
        fields = [field.name for field in spec.partition_fields]
        for name in fields:
            resolve(df.schema, name, "partition path", SchemaMismatchError)
        _check_expression(
            df,
            _partition_path(spec.path_class),
            fields,
            f"{spec.path_class}.partition_path",
            options.PARTITIONPATH_FIELD.key,
        )


def _check_expression(df: DataFrame, expression: Column, fields: Iterable[str], method: str, option: str) -> None:
    declared = dict.fromkeys(top_column(name, df.columns) for name in fields)
    try:
        data_type = select_names(df, declared).select(expression.alias("text")).schema["text"].dataType
    except PicklingError as e:  # in Spark Connect
        raise _not_picklable(method, e) from e
    except AnalysisException as e:
        raise ConfigError(
            f"{method} cannot be evaluated over the columns in {option} ({', '.join(declared)}), which are all that it "
            f"can use: {e}"
        ) from e
    if not isinstance(data_type, StringType):
        raise ConfigError(f"{method} returns a column of the type {data_type.simpleString()}; cast it to string")


def _not_picklable(method: str, error: PicklingError) -> ConfigError:
    return ConfigError(
        f"{method} has a function that cannot be pickled, so Spark cannot send it to its executors: {error}. Create "
        "what cannot be pickled (locks, connections, open files, sessions) inside of the function"
    )


def _record_key(class_name: str) -> Column:
    return _column(registered_generator(class_name).record_key, f"{class_name}.record_key")


def _partition_path(class_name: str) -> Column:
    return _column(registered_generator(class_name).partition_path, f"{class_name}.partition_path")


def _column(make: Callable[[], Column | str | None], method: str) -> Column:
    try:
        expression = make()
    except PicklingError as e:
        raise _not_picklable(method, e) from e
    if expression is None:
        raise ConfigError(f"{method} returns None; return a Column or SQL text, or do not override it")
    if not isinstance(expression, str) and not hasattr(expression, "alias"):  # a Column, of any kind of session
        raise ConfigError(f"{method} returns {expression!r}; return a Column or SQL text")
    try:
        return F.expr(expression) if isinstance(expression, str) else expression
    except ParseException as e:
        raise ConfigError(f"{method} returns {expression!r}, which is no expression of Spark: {e}") from e
