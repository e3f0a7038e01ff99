"""Topics whose brokers keep only the end, under faults and a mixed load: whoever reads from the beginning gets the rest from the archive.

As in `test_chaos`, with segments that are copied, deleted from the brokers and read back all the time; the checker goes over what the clients
saw and over all records, from the first one on. 40 rounds in `make test-long`, 100 by `make archive-chaos`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pylog_spark.archive.store.reading import ArchiveLog
from pylog_spark.testing import ZooKeeper
from tests.cluster.rounds import MIXED, PARTITIONS, SOURCE, TARGET, Company, Shape, plan, run
from tests.harness.bench import Bench, end_name
from tests.harness.history import Place
from tests.harness.runs import rounds, seed

ROUNDS = rounds("PYLOG_ARCHIVED_ROUNDS", few=3, many=40)
SEED = seed("PYLOG_ARCHIVED_SEED")
_A_CAMPAIGN = 20
_PLANNED_FOR_ONE = 2
_ROUND_S = 45
_ARCHIVED = {"remote_storage_enable": "true", "segment_ms": 300}
_SHORT = {**_ARCHIVED, "local_retention_ms": 300, "file_delete_delay_ms": 0}


def _shape(archive: Path) -> Shape:
    """The share group reads what brokers have, so they keep all of the topic that it reads."""
    return Shape(
        settings={
            "archive_url": str(archive),
            "archive_segment_bytes": 1_000,
            "remote_log_manager_task_interval_ms": 100,
            "log_retention_check_interval_ms": 100,
            "log_flush_offset_checkpoint_interval_ms": 100,
        },
        topics={MIXED: {**_ARCHIVED, "local_retention_ms": -1}, SOURCE: _SHORT, TARGET: _SHORT},
    )


class _Archived(Company):
    """Looks at the end whether the brokers really had only the end of the logs, and the archive the rest."""

    def __init__(self, archive: Path, directory: Path) -> None:
        self._archive, self._directory = archive, directory

    def before(self, place: Place, offset: int) -> bytes:
        log = ArchiveLog(str(self._archive))
        return b"".join(batch for batch in log.batches(*place, 0, offset))

    @contextmanager
    def beside(self, bench: Bench) -> Iterator[None]:
        yield
        log = ArchiveLog(str(self._archive))
        for topic in (SOURCE, TARGET):
            for number in range(PARTITIONS):
                manifest = log.manifest(topic, number)
                assert manifest.start == 0
                assert manifest.missing(0, manifest.end) == [], "nothing was deleted before it was archived"
                for broker in bench.ids:
                    folder = self._directory / end_name(broker) / f"{topic}-{number}"
                    begins = min(int(file.stem) for file in folder.glob("*.log"))
                    assert 0 < begins <= manifest.end, (
                        f"{folder} begins at {begins}, the archive ends at {manifest.end}"
                    )


@pytest.mark.slow
@pytest.mark.long  # chaos is in test_chaos.py, and brokers that die while they archive in tests/archive/test_brokers.py
@pytest.mark.timeout(120 + ROUNDS * _ROUND_S)
def test_what_brokers_have_archived_is_read_whole_after_rounds_of_faults(
    worker_zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    print(f"seed {SEED}: set PYLOG_ARCHIVED_SEED to repeat")
    planned = enumerate(plan(SEED, _PLANNED_FOR_ONE * ROUNDS))
    for first in range(0, ROUNDS, _A_CAMPAIGN):
        wanted = min(_A_CAMPAIGN, ROUNDS - first)
        directory, archive = tmp_path / str(first), tmp_path / f"archive-{first}"
        company = _Archived(archive, directory)
        campaign = run(directory, worker_zookeeper, SEED, planned, wanted, company=company, shape=_shape(archive))
        assert campaign.anomalies == [], f"seed {SEED}, rounds {[a_round.number for a_round in campaign.rounds]}"
        assert campaign.bitten == wanted, "the faults have no consequences"
