"""Many robots' results as one table of histograms, on DuckDB, ClickHouse or Spark.

>>> import taut.fleet
>>> fleet = taut.fleet.open("fleet")          # a folder that `taut fleet add` filled
>>> fleet.report()["chains"][0]["places"][0]  # the whole way: p50, p99 … over all robots, week by week
>>> fleet.worst()["ranked"][0]["robot"]
>>> fleet.compare("v1.4", "v1.5")
>>> fleet.rows                                # the Ibis table, for questions of your own

Needs Ibis and DuckDB: `pip install 'taut-….whl[fleet]'`.
"""

from taut.fleet.engines import ENGINES, NoFleet
from taut.fleet.expressions import distributions
from taut.fleet.questions import Fleet, open

__all__ = ["ENGINES", "Fleet", "NoFleet", "distributions", "open"]
