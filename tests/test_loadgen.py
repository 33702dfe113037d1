"""MLPerf LoadGen against a real server: its verdict is good where the bound is
easy, and bad where requests are refused."""

from foliot_tools.loadgen import run_server_scenario


# A bound that holds on a host that takes the processor away for a third of a second.
EASY_BOUND_MS = 3000


def test_a_bound_that_is_kept_is_valid(small_server):
    result = run_server_scenario(small_server.grpc, "dense", 200, EASY_BOUND_MS, seconds=5)
    assert result.valid, result.summary
    assert result.outcomes.keys() == {"answered"}
    assert "Scenario" in result.summary and "Server" in result.summary


def test_refusals_count_as_missed(small_server):
    # With all but a microsecond of the bound kept back, every request is refused.
    result = run_server_scenario(small_server.grpc, "dense", 100, 20, seconds=2, margin_ms=19.999)
    assert not result.valid
    assert result.outcomes.keys() <= {"unmeetable", "overload", "expired", "late"}, result.outcomes
