"""Parse option segmentCopies: a URL of `pyarrow.fs` without secrets, because query plans show it.

Rule: only forms known to be harmless are accepted; everything else is refused, and never quoted.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from informix_capture_client.errors import BadOption

_SCHEMES = ("file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")

# The part before the @ of a URL: an Azure container, by its naming rules, or an HDFS user, which has no
# password. For S3 and Google Cloud Storage that part is a key.
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}|\$root|\$web")
_USERS = {
    **dict.fromkeys(("abfs", "abfss"), _CONTAINER),
    **dict.fromkeys(("hdfs", "viewfs"), re.compile(r"[a-z_][a-z0-9_.-]{0,31}")),
}
# No character that could begin a parameter, even if it is not parsed as one: a signature may follow it.
_PATH = re.compile(r"[\w ./~+,()-]*")
_PLACE = re.compile(r"(?:[A-Za-z0-9._-]{0,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")
_FLAG, _NUMBER = re.compile(r"true|false|0|1"), re.compile(r"\d{1,9}")
_HOST = re.compile(r"(?:https?://)?[A-Za-z0-9.-]{1,253}(?::\d{1,5})?/?")
_SCHEME, _REGION = re.compile(r"https?"), re.compile(r"[a-z0-9-]{1,24}")
_IDENTITY = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
# those of `pyarrow.fs` (26.0) except for access keys, client secrets and signatures
_PARAMETERS = {
    "region": _REGION,
    "scheme": _SCHEME,
    "endpoint_override": _HOST,
    "allow_bucket_creation": _FLAG,
    "allow_bucket_deletion": _FLAG,
    "allow_delayed_open": _FLAG,
    "tls_verify_certificates": _FLAG,
    "tls_ca_file_path": re.compile(r"/[\w./-]{1,200}\.(?:pem|crt|cer)"),
    "retry_limit_seconds": _NUMBER,
    "enable_tls": _FLAG,
    "blob_storage_authority": _HOST,
    "dfs_storage_authority": _HOST,
    "client_id": _IDENTITY,
    "tenant_id": _IDENTITY,
    "background_writes": _FLAG,
    "replication": _NUMBER,
    "buffer_size": _NUMBER,
}


def url_of_copies(text: str) -> str:
    """Parse a URL of `pyarrow.fs`; refuse one that may contain a secret."""
    try:
        url = urlsplit(text)
        is_harmless = _has_harmless_parts(url)
    except ValueError:
        raise BadOption("option 'segmentCopies' is not a URL.", option="segmentCopies") from None
    if not is_harmless:
        raise BadOption(
            "option 'segmentCopies' may contain a secret, before an @, in a parameter or after"
            " a special character in its path; query plans show it.",
            "Use only letters, digits and ._-+~,() in the path, and grant access to each host"
            " by its role or environment. Allowed parameters are"
            f" {', '.join(_PARAMETERS)}.",
            option="segmentCopies",
        )
    if url.scheme not in _SCHEMES or not (url.netloc + url.path).strip("/"):
        raise ValueError(
            f"must be a URL such as s3://bucket/path or file:///mnt/path, of {', '.join(_SCHEMES)}"
        )
    return text


def _has_harmless_parts(url: SplitResult) -> bool:
    """Return whether every part is known to contain no secret."""
    parameters = parse_qsl(url.query, keep_blank_values=True, strict_parsing=bool(url.query))
    return (
        not url.fragment
        and _PATH.fullmatch(unquote(url.path)) is not None
        and _PLACE.fullmatch(url.netloc.rpartition("@")[2]) is not None
        and _is_harmless_user(url)
        and all(
            name in _PARAMETERS and _PARAMETERS[name].fullmatch(value) for name, value in parameters
        )
    )


def _is_harmless_user(url: SplitResult) -> bool:
    if "@" not in url.netloc:
        return True
    user = _USERS.get(url.scheme)
    return url.password is None and user is not None and user.fullmatch(url.username or "") is not None
