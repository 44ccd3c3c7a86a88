"""Spark reads our tables on S3 by its own (Hadoop's) file system, below the mount tables that tell it of partitions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.jars import class_path

from tests.sessions import SMALL
from tests.unit.storage.s3_server import running_s3_server

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_partitions_on_s3_are_known_to_spark():
    with running_s3_server() as server:
        jars = class_path("hadoop-aws-3.3.4")
        s3a = {
            "endpoint": server.endpoint,
            "endpoint.region": "us-east-1",
            "access.key": "test-id",
            "secret.key": "test-secret",
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
        }
        conf = {
            "spark.driver.extraClassPath": jars,
            "spark.executor.extraClassPath": jars,
            **SMALL,
            **{f"spark.hadoop.fs.s3a.{key}": value for key, value in s3a.items()},
        }
        path = f"s3a://{server.new_bucket()}/a b"
        given = [json.dumps(value) for value in (conf, path, server.options, ["COPY_ON_WRITE", "MERGE_ON_READ"])]
        env = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        env["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {jars} pyspark-shell"
        done = subprocess.run(
            [sys.executable, "-m", "tests.interop.write.s3a_job", *given],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=env,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    rows = [[i, -2 * i if i % 7 == 0 else 2 * i] for i in range(50) if i % 5 == 3]
    assert found == [{"folders": rows, "files": rows, "pruned": True, "addresses": ["viewfs"]}] * 2
