from __future__ import annotations

import pickle
import time

import pytest

from pyhudi.config import Options
from pyhudi.errors import (
    AlreadyExistsError,
    ConfigError,
    NotFoundError,
    PreconditionFailedError,
    StorageError,
    UnansweredError,
)
from pyhudi.read.query.table_location import open_table
from pyhudi.storage import Storage, open_storage
from pyhudi.storage.object_store.object_store_location import reason_of
from tests.processes import separate_processes
from tests.unit.storage.s3_server import S3Server
from tests.unit.storage.suite import StorageTests, write_and_fail


class TestS3Storage(StorageTests):
    @pytest.fixture
    def storage(self, s3: S3Server) -> Storage:
        return open_storage(f"s3://{s3.new_bucket()}/lake/my table/é%2F", s3.options)

    @pytest.fixture
    def reopen_options(self, s3: S3Server) -> dict[str, str]:
        return s3.options


def test_a_whole_bucket(s3: S3Server) -> None:
    storage = open_storage(f"s3a://{s3.new_bucket()}", s3.options)
    storage.create("a/b", b"1")
    storage.create("c", b"1")
    assert sorted(storage.list(recursive=True)["path"].to_pylist()) == ["a/b", "c"]
    assert storage.list()["path"].to_pylist() == ["c"]
    assert storage.list_dirs() == ["a"]
    storage.delete_tree("")
    assert storage.list(recursive=True).num_rows == 0


def test_addresses(s3: S3Server) -> None:
    storage = open_storage("s3a://b/x/y/", s3.options)
    assert storage.root == "s3://b/x/y"
    assert storage.uri("p/f") == "s3a://b/x/y/p/f"


def test_the_server_honours_conditions(s3: S3Server) -> None:
    """Else the races below would prove nothing."""
    storage = open_storage(f"s3://{s3.new_bucket()}", s3.options)
    storage.create("f", b"1")
    with pytest.raises(AlreadyExistsError):
        storage.create("f", b"1")


def test_a_put_that_is_sent_twice_is_known_again(s3: S3Server) -> None:
    storage = open_storage(f"s3://{s3.new_bucket()}", s3.options)
    with s3.losing_answers(1):
        storage.create("f", b"1")
    found = storage.stat("f")
    assert found is not None
    with s3.losing_answers(1):
        version = storage.replace("f", b"2", found.version)
    assert storage.replace("f", b"3", version)
    with s3.losing_answers(1):
        assert storage.replace("g", b"", None)
    # what somebody else has put with the same content is somebody else's
    other = open_storage(storage.root, s3.options)
    with pytest.raises(AlreadyExistsError), s3.losing_answers(1):
        other.create("f", b"3")
    with pytest.raises(PreconditionFailedError):
        other.replace("f", b"3", version)


def test_a_conflict_without_an_object_is_no_object(s3: S3Server) -> None:
    storage = open_storage(f"s3://{s3.new_bucket()}", s3.options)
    with s3.conflicting(1, 2):
        storage.create("f", b"1")
    assert storage.read("f") == b"1"
    with s3.conflicting(1):
        assert storage.replace("g", b"2", None)
    with pytest.raises(UnansweredError, match="conflicting requests"), s3.conflicting(*range(10)):
        storage.create("h", b"3")
    with pytest.raises(AlreadyExistsError), s3.conflicting(1):
        storage.create("f", b"4")


def test_many_objects_are_deleted_at_the_same_time(s3: S3Server) -> None:
    bucket = s3.new_bucket()
    names = [f"a/{n}" for n in range(2500)]
    s3.fill(bucket, names)
    storage = open_storage(f"s3://{bucket}", s3.options)
    with s3.recorded_requests() as requests:
        storage.delete_many([*names, "a/absent"])
    assert len(requests) == 3, requests
    assert not storage.list("a").num_rows


def test_objects_are_where_others_look(s3: S3Server) -> None:
    bucket = s3.new_bucket()
    open_storage(f"s3://{bucket}/t", s3.options).write("d=1%2F2/é f", b"content")
    assert s3.boto().get_object(Bucket=bucket, Key="t/d=1%2F2/é f")["Body"].read() == b"content"


def test_placeholders_of_folders_are_no_files(s3: S3Server) -> None:
    bucket = s3.new_bucket()
    for key in ("t/", "t/p=1/", "t/.hoodie/", "t/.hoodie/timeline/", "t/.hoodie/timeline/history/", "t/p=2/"):
        s3.request("PUT", f"/{bucket}/{key}")
    storage = open_storage(f"s3://{bucket}/t", s3.options)
    assert storage.list(recursive=True).num_rows == 0
    storage.create(".hoodie/timeline/1.commit.requested", b"")
    storage.create("p=1/f", b"1")
    storage.create("p=1/noextension", b"")
    assert sorted(storage.list(recursive=True)["path"].to_pylist()) == [
        ".hoodie/timeline/1.commit.requested",
        "p=1/f",
        "p=1/noextension",
    ]
    assert storage.list("p=1", recursive=True).num_rows == storage.list("p=1").num_rows == 2
    assert storage.list("p=2").num_rows == storage.list(".hoodie/timeline/history").num_rows == 0
    assert storage.list_dirs() == [".hoodie", "p=1", "p=2"]


def test_listing_is_paged(s3: S3Server) -> None:
    bucket = s3.new_bucket()
    storage = open_storage(f"s3://{bucket}/t", s3.options)
    s3.fill(bucket, (f"t/d/{number}" for number in range(2_100)))
    assert storage.list("d").num_rows == storage.list(recursive=True).num_rows == 2_100
    storage.delete_tree("d")
    assert storage.list(recursive=True).num_rows == 0


def test_an_abandoned_upload_is_taken_back(s3: S3Server) -> None:
    bucket = s3.new_bucket()
    storage = open_storage(f"s3://{bucket}", s3.options)
    with pytest.raises(ZeroDivisionError):
        write_and_fail(storage, "f", b"x" * 40_000_000)
    assert b"<Upload>" not in s3.request("GET", f"/{bucket}?uploads")
    assert storage.list().num_rows == 0


def test_a_failing_upload_is_an_error(s3: S3Server) -> None:
    storage = open_storage("s3://no-such-bucket", s3.options)

    def stream(blocks: int) -> None:
        with storage.open_output("f") as out:
            for _ in range(blocks):
                out.write(b"x" * 10_000_000)
                time.sleep(0.01)

    for blocks in (0, 10):
        with pytest.raises(StorageError, match=r"no-such-bucket|upload of 'f'"):
            stream(blocks)


def test_reading_asks_for_ranges_only(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(f"s3://{s3.new_bucket()}", s3.options)
    storage.write("f", bytes(range(256)) * 20_000)
    requests: list[tuple[int, int]] = []
    real = type(storage).read_range

    def spy(self: Storage, path: str, offset: int, length: int) -> bytes:
        requests.append((offset, length))
        return real(self, path, offset, length)

    monkeypatch.setattr(type(storage), "read_range", spy)
    with storage.open_input("f") as file:
        file.seek(1_000_000)
        assert file.read(3) == bytes([64, 65, 66])
        assert file.read(4) == bytes([67, 68, 69, 70])
        assert file.read_at(2_000_000, 2_000_000)[:1] == bytes([128])
    assert [length for _, length in requests] == [256 * 1024, 2_000_000]


def test_settings_of_a_spark_session(s3: S3Server) -> None:
    bucket = s3.new_bucket()
    hadoop = {
        "fs.s3a.endpoint": s3.endpoint,
        "spark.hadoop.fs.s3a.access.key": "id",
        "spark.hadoop.fs.s3a.secret.key": "secret",
    }
    storage = open_storage(f"s3a://{bucket}/t", hadoop)
    storage.write("f", b"1")
    assert open_storage(f"s3://{bucket}/t", s3.options).read("f") == b"1"


def test_an_endpoint_of_hadoop_without_tls(s3: S3Server) -> None:
    """The settings of MinIO in most of its guides to Spark."""
    bucket = s3.new_bucket()
    hadoop = {
        "spark.hadoop.fs.s3a.endpoint": s3.endpoint.removeprefix("http://"),
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "id",
        "fs.s3a.secret.key": "secret",
    }
    open_storage(f"s3a://{bucket}/t", hadoop).write("f", b"1")
    assert open_storage(f"s3://{bucket}/t", s3.options).read("f") == b"1"


def test_a_public_bucket_by_settings_of_hadoop() -> None:
    anonymous, simple = (f"org.apache.hadoop.fs.s3a.{name}AWSCredentialsProvider" for name in ("Anonymous", "Simple"))
    key = {"pyhudi.storage.access_key_id": "id"}
    for providers, more, expected in [
        (anonymous, {}, "true"),
        (f"\n  {anonymous},\n  {simple}\n", {}, "true"),
        (simple, {}, None),
        (f"{simple},{anonymous}", {}, None),  # the second one is for those without a key
        (anonymous, key, None),
        (anonymous, {**key, "pyhudi.storage.skip_signature": "true"}, "true"),
    ]:
        storage = open_storage("s3a://bucket/t", {"fs.s3a.aws.credentials.provider": providers, **more})
        assert storage.settings.get("pyhudi.storage.skip_signature") == expected  # type: ignore[attr-defined]


def test_settings_of_the_environment(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": s3.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    storage = open_storage(f"s3://{s3.new_bucket()}/t")
    storage.write("f", b"1")
    assert storage.read("f") == b"1"


def test_unknown_setting(s3: S3Server) -> None:
    storage = open_storage("s3://b/t", {**s3.options, "pyhudi.storage.acess_key": "x"})
    with pytest.raises(ConfigError, match="acess_key"):
        storage.read("f")


def test_secrets_are_not_shown(s3: S3Server) -> None:
    storage = open_storage("s3://no-such-bucket/t", s3.options)
    assert "test-secret" not in f"{storage!r} {storage.__getstate__()!r}"
    with pytest.raises(StorageError) as caught:
        storage.write("f", b"1")
    assert "test-secret" not in str(caught.value)
    assert b"test-secret" in pickle.dumps(storage)  # executors need it


def test_a_server_that_is_not_there() -> None:
    options = {
        "pyhudi.storage.endpoint_url": "http://127.0.0.1:9",
        "pyhudi.storage.allow_http": "true",
        "pyhudi.storage.skip_signature": "true",
        "pyhudi.storage.max_retries": "0",
    }
    storage = open_storage("s3://b/t", options)
    for access in (storage.read, storage.delete, lambda path: storage.delete_many([path])):
        with pytest.raises(StorageError, match=r"^'s3a://b/t/f': .*127"):
            access("f")


def test_what_keeps_one_out_is_said(s3: S3Server) -> None:
    plain = {name: value for name, value in s3.options.items() if not name.endswith("allow_http")}
    with pytest.raises(StorageError, match=r"needs pyhudi\.storage\.allow_http=true"):
        open_storage("s3://b/t", plain).read("f")
    with pytest.raises(StorageError, match="no such bucket: check its name"):
        open_table("s3://misspelt/t", Options.parse(s3.options))
    nobody = reason_of(OSError("Error performing PUT http://169.254.169.254/latest/api/token"))
    assert "token; no credentials: set them by options (pyhudi.storage.access_key_id" in nobody
    assert reason_of(OSError("no way\n\nDebug source:\nhttp://metadata.google.internal")) == "no way"
    elsewhere = "Received redirect without LOCATION, this normally indicates an incorrectly configured region"
    assert "in another region: set it by pyhudi.storage.region" in reason_of(OSError(elsewhere))
    refused = type("PermissionDeniedError", (Exception,), {})("no")
    assert reason_of(refused).startswith("no; access denied with these credentials: ")


def test_azure_and_google_addresses() -> None:
    account = {"pyhudi.storage.account_name": "acc"}
    dfs = "acc.dfs.core.windows.net"
    assert open_storage(f"abfss://c@{dfs}/t x").root == "az://c/t x"
    assert open_storage(f"abfss://c@{dfs}/t x").uri("f") == f"abfss://c@{dfs}/t x/f"
    assert open_storage("wasbs://c@acc.blob.core.windows.net/t").uri("f") == f"abfss://c@{dfs}/t/f"
    assert open_storage("az://c/t", account).uri("f") == f"abfss://c@{dfs}/t/f"
    assert open_storage("gs://b/t").uri("p/f") == "gs://b/t/p/f"


def _create_all(root: str, options: dict[str, str], count: int, start: float) -> int:
    storage = open_storage(root, options)
    time.sleep(max(0.0, start - time.time()))
    won = 0
    for path in range(count):
        try:
            storage.create(f"t/{path}", b"content")
            won += 1
        except AlreadyExistsError:
            pass
    return won


def test_one_process_wins_each_object(s3: S3Server) -> None:
    root = f"s3://{s3.new_bucket()}/t"
    with separate_processes().Pool(3) as pool:
        start = time.time() + 1.0
        won = pool.starmap(_create_all, [(root, s3.options, 40, start)] * 3, chunksize=1)
    assert sum(won) == 40


def test_a_small_object_is_opened_and_read_by_one_request(s3: S3Server) -> None:
    storage = open_storage(f"s3://{s3.new_bucket()}", s3.options)
    storage.create("small", b"0123456789")
    storage.create("empty", b"")
    large = bytes(range(256)) * 8192
    storage.create("large", large)
    with s3.recorded_requests() as requests, storage.open_input("small") as source:
        assert source.size() == 10
        source.seek(4)
        assert source.read(3) == b"456"
        source.seek(0)
        assert source.read() == b"0123456789"
    assert len(requests) == 1, requests
    with storage.open_input("empty") as source:
        assert source.read() == b""
    with pytest.raises(NotFoundError):
        storage.open_input("missing")
    with s3.recorded_requests() as requests, storage.open_input("large") as source:
        source.seek(len(large) - 1000)
        assert source.read() == large[-1000:]
        source.seek(len(large) - 600_000)
        assert source.read() == large[-600_000:]
        source.seek(10)
        assert source.read(1_000) == large[10:1_010]
    assert len(requests) == 3, requests
