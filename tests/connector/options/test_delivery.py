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
    assert (options.batches.delivery, options.batches.flight_address) == ("files", None)
    assert (options.spool.segment_copies, options.batches.min_partitions) == ("", 1)
    assert options.batches.max_partition_bytes == 64 << 20


@pytest.mark.parametrize(
    ("delivery", "address"),
    [
        ("files", None),
        ("FILES ", None),
        ("grpc+tls://10.0.0.7", ("10.0.0.7", 0)),
        ("grpc+tls://driver-1.example:4711", ("driver-1.example", 4711)),
        ("grpc+tls://[fd00::7]:4711", ("fd00::7", 4711)),
        ("grpc+tls://[fd00::7]", ("fd00::7", 0)),
    ],
)
def test_a_flight_server_is_there_only_where_executors_may_call_it(
    delivery: str, address: tuple[str, int] | None
) -> None:
    assert parse(delivery=delivery).batches.flight_address == address


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("9187", ("127.0.0.1", 9187)),
        ("0.0.0.0:9187", ("0.0.0.0", 9187)),
        ("[::]:9187", ("::", 9187)),
    ],
)
def test_metrics_are_served_on_loopback_unless_an_address_is_given(
    given: str, address: tuple[str, int]
) -> None:
    assert parse(metricsAddress=given).reports.metrics == address
    assert parse().reports.metrics is None


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
    assert parse(spoolPath=path).spool.path == path


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
    assert parse(segmentCopies=url).spool.segment_copies == url


REFUSED = [
    (
        "an unknown way",
        {"delivery": "carrier pigeon"},
        "must be files, or an address such as grpc+tls://driver:8815",
    ),
    (
        "every address at once",
        {"delivery": "grpc+tls://0.0.0.0"},
        "must have an address that executors can connect to",
    ),
    ("an address without a scheme", {"delivery": "driver:4711"}, "must be files, or an address"),
    ("an address of another scheme", {"delivery": "grpc://driver"}, "must be files, or an address"),
    ("a port that is none", {"delivery": "grpc+tls://driver:65536"}, "must be files, or an address"),
    ("a path behind it", {"delivery": "grpc+tls://driver:4711/x"}, "must be files, or an address"),
    ("a host without a port", {"metricsAddress": "0.0.0.0"}, "must be HOST:PORT or a port"),
    ("a port that is none", {"metricsAddress": "65536"}, "must be HOST:PORT or a port"),
    ("any port", {"metricsAddress": "0"}, "must be HOST:PORT or a port"),
    ("a path for a URL", {"segmentCopies": "/mnt/spool"}, "must be a URL such as s3://bucket/path"),
    ("a URL of nothing", {"segmentCopies": "s3://"}, "must be a URL such as s3://bucket/path"),
    ("a URL of another world", {"segmentCopies": "http://bucket/path"}, "must be a URL such as"),
    ("no partition", {"minPartitions": "0"}, "from 1 to 10000"),
]


@pytest.mark.parametrize(("changes", "says"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_what_cannot_be_meant_is_refused(changes: dict[str, str], says: str) -> None:
    with pytest.raises(BadOption) as caught:
        parse(**changes)
    assert says in str(caught.value)


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
