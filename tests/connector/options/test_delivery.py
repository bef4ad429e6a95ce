"""Options of the delivery to executors: what cannot be meant, and what must not show, is refused."""

from __future__ import annotations

import pytest

from harness.servers.stores import source_options
from informix_capture_client.errors import BadOption
from informix_cdc.options.source import SourceOptions


def parse(**changes: str) -> SourceOptions:
    return SourceOptions.parse(source_options(9088, **changes), {})


def test_rows_go_by_file_unless_asked_otherwise() -> None:
    options = parse()
    assert (options.deliver_by, options.flight_host, options.flight_port) == ("auto", "", 0)
    assert (options.segment_copies, options.min_partitions) == ("", 1)
    assert options.max_partition_bytes == parse(maxPartitionBytes="64m").max_partition_bytes


@pytest.mark.parametrize(
    ("changes", "has_server"),
    [
        ({}, False),
        ({"delivery": "files"}, False),
        ({"flightHost": "10.0.0.7"}, True),
        ({"delivery": "flight"}, True),
    ],
    ids=repr,
)
def test_a_flight_server_is_there_only_where_executors_may_call_it(
    changes: dict[str, str], has_server: bool
) -> None:
    assert parse(**changes).has_flight_server == has_server


@pytest.mark.parametrize(
    "url", ["s3://bucket/x", "dbfs:/x", "hdfs:/x", "gs://b", "abfss://c@a/x", "file:///x", "S3A://b"]
)
def test_a_spool_path_with_a_scheme_is_refused_with_the_reason(url: str) -> None:
    with pytest.raises(
        BadOption, match=r"option 'spoolPath' must be a local path: .* is the scheme of a URL"
    ) as no:
        parse(spoolPath=url)
    assert f" {url.partition(':')[0]}: is the scheme of a URL" in str(no.value)
    assert "segmentCopies" in str(no.value)


@pytest.mark.parametrize("path", ["~/spool", "~", "spool", "./s3:/x", "../spool", " /spool", "$HOME/x"])
def test_a_spool_path_that_depends_on_where_the_query_is_started_is_refused(path: str) -> None:
    with pytest.raises(BadOption, match="option 'spoolPath' must be an absolute path") as no:
        parse(spoolPath=path)
    assert "/var/lib/informix-cdc" in str(no.value)


@pytest.mark.parametrize("path", ["/var/lib/spool", "/mnt/s3://x", "/home/u/~/x"])
def test_a_spool_path_without_one_is_taken(path: str) -> None:
    assert parse(spoolPath=path).spool_path == path


@pytest.mark.parametrize("host", ["driver-1.example", "10.0.0.7", "fd00::7"])
def test_an_address_is_a_name_or_a_number(host: str) -> None:
    assert parse(flightHost=host).flight_host == host


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/some/path?region=eu-west-1",
        "file:///mnt/spool",
        "gs://bucket",
        "abfss://container@account.dfs.core.windows.net/path",
        "hdfs://namenode:8020/spool",
        "hdfs://joe@namenode:8020/spool",
        "hdfs://[2001:db8::7]:8020/spool",
        "s3://bucket/p?endpoint_override=http%3A%2F%2Fminio%3A9000&scheme=http&allow_bucket_creation=true",
        "s3://bucket/2026/a%20b,c_(d)-~é?region=us-gov-west-1&endpoint_override=minio:9000",
        "gs://bucket/path?retry_limit_seconds=30",
        "abfs://container@account/p?client_id=00000000-0000-4000-8000-000000000000",
        "s3://bucket/path?region=eu-west-1&tls_ca_file_path=/etc/ssl/minio.pem",
        "abfs://container@account/path?enable_tls=true",
    ],
)
def test_copies_go_to_a_url_of_pyarrow(url: str) -> None:
    assert parse(segmentCopies=url).segment_copies == url


REFUSED = [
    ("an unknown way", {"delivery": "carrier pigeon"}, "auto, files or flight"),
    (
        "every address at once",
        {"flightHost": "0.0.0.0"},
        "must be an address that executors can connect to",
    ),
    ("an address with a port", {"flightHost": "driver:4711"}, "without a port"),
    ("a URL for an address", {"flightHost": "grpc://driver"}, "without a port"),
    ("a port that is none", {"flightPort": "65536"}, "from 0 to 65535"),
    (
        "an address of no server",
        {"flightHost": "10.0.0.7", "delivery": "files"},
        "'flightHost' cannot be used with delivery=files",
    ),
    (
        "a port of no server",
        {"flightPort": "4711"},
        "'flightPort' is set, but no",
    ),
    ("a port beside files", {"flightPort": "4711", "delivery": "files"}, "'flightPort' is set, but"),
    ("a path for a URL", {"segmentCopies": "/mnt/spool"}, "must be a URL such as s3://bucket/path"),
    ("a URL of nothing", {"segmentCopies": "s3://"}, "must be a URL such as s3://bucket/path"),
    ("a URL of another world", {"segmentCopies": "http://bucket/path"}, "must be a URL such as"),
    ("no partition", {"minPartitions": "0"}, "from 1 to 10000"),
    ("partitions of next to nothing", {"maxPartitionBytes": "1k"}, "from 64k to 1024t"),
]


@pytest.mark.parametrize(("changes", "says"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_be_meant_is_refused(changes: dict[str, str], says: str) -> None:
    with pytest.raises(BadOption) as caught:
        parse(**changes)
    assert says in str(caught.value)


def test_one_mistake_about_flight_is_told_once() -> None:
    for changes in ({"flightHost": "a:1"}, {"delivery": "pigeon", "flightHost": "10.0.0.7"}):
        with pytest.raises(BadOption) as caught:
            parse(flightPort="4711", **changes)
        assert "options are invalid" not in str(caught.value)
    assert parse(flightPort="4711", delivery="flight").flight_port == 4711


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIAEXAMPLE:hunter2@bucket/path",
        "s3://hunter2@bucket/path",
        "abfs://:hunter2@account/path",
        "s3://bucket/path?secret_key=hunter2",
        "abfs://container@account/path?sig=hunter2",
        "abfs://container@account/path?client_secret=hunter2&tenant_id=1",
        "hdfs://joe:hunter2@namenode/path",
        "s3://AKIA:hunter2@[bucket/path",
        "abfs://container@account/path?client_id=hunter2",
        "gs://hunter2@bucket/path",
        "gcs://hunter2@bucket",
        "file://hunter2@host/path",
        "viewfs://joe:hunter2@cluster/",
        "abfs://Hunter2-KEY@account/path?enable_tls=hunter2",
        "abfss://container@account/path?sas=sv%3D2024%26sig%3Dhunter2",
        "abfss://container@account/path?sv=2024&sr=c&sp=hunter2",
        "s3://bucket/path?endpoint_override=http%3A%2F%2Fu%3Ahunter2%40minio",
        "s3://bucket/path?endpoint_override=minio%3Fsig%3Dhunter2",
        "s3://bucket/path?region=hunter2/KEY",
        "s3://bucket/path?hunter2",
        "s3://bucket/path?region=eu-west-1;secret=hunter2",
        "s3://bucket/path#hunter2",
        "s3://bucket/http%3A%2F%2Fu%3Ahunter2%40minio/path",
        "hdfs://namenode/path?kerb_ticket=hunter2",
        "s3://bucket/path;sig=hunter2",
        "s3://bucket/path%3Bsig=hunter2",
        "s3://bucket/path%3Fsig%3Dhunter2",
        "s3://bucket/path%253Fsig%253Dhunter2",
        "s3://bucket/path&sig=hunter2/more",
        "s3://bucket;sig=hunter2/path",
        "s3://bucket%3Bsig=hunter2/path",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(BadOption, match="segmentCopies") as caught:
        parse(segmentCopies=url)
    assert "hunter2" not in str(caught.value)
