"""What is wrong with a server, and the remedies.

Rule: facts in, findings out; a question that is not answered is a finding of its own.
"""

from __future__ import annotations

from informix_cdc.doctor.as_known import Look, examine_as_known
from informix_cdc.doctor.checks import SetUp, examine
from informix_cdc.doctor.diagnosis import diagnose, diagnose_as_known
from informix_cdc.doctor.facts import (
    CdcFacts,
    DriverFacts,
    ServerFacts,
    read_cdc_facts,
    read_server_facts,
    read_table_facts,
)
from informix_cdc.doctor.large_object_checks import ObjectColumn
from informix_cdc.doctor.security_checks import KEYSTORE, STASH, SecurityFacts, TlsFacts
from informix_cdc.doctor.snapshot_checks import SnapshotFacts, SnapshotTable

__all__ = [
    "KEYSTORE",
    "STASH",
    "CdcFacts",
    "DriverFacts",
    "Look",
    "ObjectColumn",
    "SecurityFacts",
    "ServerFacts",
    "SetUp",
    "SnapshotFacts",
    "SnapshotTable",
    "TlsFacts",
    "diagnose",
    "diagnose_as_known",
    "examine",
    "examine_as_known",
    "read_cdc_facts",
    "read_server_facts",
    "read_table_facts",
]
