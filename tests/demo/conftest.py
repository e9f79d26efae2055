"""One demo cluster with two weeks behind it, shared by the tests that only look."""

import polars as pl
import pytest

from tocsin.demo.cluster import START, DemoCluster

DAYS = 14


@pytest.fixture(scope="package")
def cluster() -> DemoCluster:
    return DemoCluster(seed=7, days=DAYS)


@pytest.fixture(scope="package")
def jobs(cluster: DemoCluster) -> pl.DataFrame:
    return pl.concat(cluster.accounting(START, START + DAYS * 86400))
