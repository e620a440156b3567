"""The demo's ROS 2 nodes, as processes."""

from pathlib import Path

from workloads.tests.processes import start


def test_nodes_that_failed_are_named_first(tmp_path: Path) -> None:
    (tmp_path / "rclpy.py").write_text("raise SystemExit(3)")
    run = start("ros2", "--duration", "1", PYTHONPATH=str(tmp_path))
    out, _ = run.communicate(timeout=600)
    assert run.returncode == 1
    assert out.startswith("ros2: failed: the camera ended with exit code 3, the detector ended with exit code 3")
