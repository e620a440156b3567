"""What the wheel brings for C and C++: a CMake package, pkg-config, the guard's library, and a ROS 2 node that compiles against
the header."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import taut

ROOT = Path(__file__).parents[2]
MOCK = Path(__file__).parent / "ros2_mock" / "cmake"
PROGRAM = """
    #include "taut.h"
    #include <stdio.h>
    int main(void) {
        for (uint64_t id = 0; id < 10; id++) { TAUT_STAMP("a", id); TAUT_STAMP("b", id); }
        printf("%d\\n", taut_attached());
        return 0;
    }
"""


def run(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout


def folder(option: str) -> Path:
    return Path(run(sys.executable, "-m", "taut", option).strip())


def cmake(source: Path, build: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = ["cmake", "-S", source, "-B", build, *options]
    return subprocess.run(command, capture_output=True, text=True)


def test_folders_hold_what_they_are_asked_for() -> None:
    for option, file in [
        ("--cmake-dir", "taut-config.cmake"),
        ("--include-dir", "taut.h"),
        ("--pkgconfig-dir", "taut.pc"),
    ]:
        assert (folder(option) / file).is_file()
    headers = {path.name for path in (ROOT / "include").iterdir()}
    assert headers <= {path.name for path in folder("--include-dir").iterdir()}
    done = subprocess.run([sys.executable, "-m", "taut"], capture_output=True, text=True)
    assert done.returncode == 2 and "--cmake-dir" in done.stderr


def test_every_place_says_the_same_version() -> None:
    version = taut.__version__
    assert f'set(PACKAGE_VERSION "{version}")' in (ROOT / "share/cmake/taut/taut-config-version.cmake").read_text()
    for name in ("taut.pc", "taut-guard.pc"):
        assert f"\nVersion: {version}\n" in (ROOT / "share/pkgconfig" / name).read_text()


@pytest.mark.parametrize("place", ["wheel", "checkout"])
def test_a_cmake_project_finds_the_headers(tmp_path: Path, place: str) -> None:
    (tmp_path / "robot.c").write_text(textwrap.dedent(PROGRAM))
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(robot C)\nfind_package(taut 0.1 REQUIRED)\n"
        "add_executable(robot robot.c)\ntarget_link_libraries(robot taut::taut)\n"
    )
    where = f"-Dtaut_DIR={folder('--cmake-dir')}" if place == "wheel" else f"-DCMAKE_PREFIX_PATH={ROOT}"
    done = cmake(tmp_path, tmp_path / "build", where)
    assert done.returncode == 0, done.stderr
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "robot") == "0\n"


GUARDED = """
    #include <cstdio>
    #include "taut.h"
    #include "taut_guard.hpp"
    using namespace std::chrono_literals;
    int main() {
        taut::SpeedGuard guard{taut::parameters_for_tcp(10ms, 1000.0)};
        TAUT_STAMP("guard.asked", 1);
        std::printf("%d\\n", guard.tick(1s).enables_motion);
    }
"""


def without_a_checkout() -> dict[str, str]:
    """An environment in which neither cargo nor a checkout is found."""
    return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}


def test_a_cmake_project_finds_the_guard_in_the_wheel_alone(tmp_path: Path) -> None:
    (tmp_path / "robot.cpp").write_text(textwrap.dedent(GUARDED))
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(robot CXX)\nset(CMAKE_CXX_STANDARD 17)\n"
        "find_package(taut REQUIRED COMPONENTS guard)\nadd_executable(robot robot.cpp)\n"
        "target_link_libraries(robot taut::guard)\nget_target_property(at taut::guard IMPORTED_LOCATION)\n"
        'message(STATUS "guard at ${at}")\n'
    )
    configure = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-Dtaut_DIR={folder('--cmake-dir')}"]
    for command in (configure, ["cmake", "--build", tmp_path / "build"], [tmp_path / "build/robot"]):
        done = subprocess.run(command, capture_output=True, text=True, env=without_a_checkout())
        assert done.returncode == 0, done.stdout + done.stderr
    # Nothing was heard yet: no motion.
    assert done.stdout == "0\n"
    library = folder("--include-dir").parent / "lib/libtaut_guard.a"
    assert f"guard at {library}" in subprocess.run(configure, capture_output=True, text=True).stdout


def test_pkg_config_knows_the_guard(tmp_path: Path) -> None:
    (tmp_path / "robot.cpp").write_text(textwrap.dedent(GUARDED))
    env = without_a_checkout() | {"PKG_CONFIG_PATH": str(folder("--pkgconfig-dir"))}
    asked = subprocess.run(["pkg-config", "--cflags", "--libs", "taut-guard"], capture_output=True, text=True, env=env)
    assert asked.returncode == 0, asked.stderr
    run("g++", "-std=c++17", "-Wall", tmp_path / "robot.cpp", "-o", tmp_path / "robot", *asked.stdout.split())
    assert run(tmp_path / "robot") == "0\n"


def test_a_part_or_a_version_that_is_not_there_is_told(tmp_path: Path) -> None:
    # As the headers of a release are, without a library.
    headers = tmp_path / "headers"
    for part in ("include", "share"):
        shutil.copytree(ROOT / part, headers / part)
    for wanted, said in [
        ("taut REQUIRED COMPONENTS guard", "cargo rustc --release -p taut-guard"),
        ("taut REQUIRED COMPONENTS gard", "taut::gard is not there"),
        ("taut 0.2 REQUIRED", "0.1.0"),
        ("taut 1.0 REQUIRED", "0.1.0"),
    ]:
        (tmp_path / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.16)\nproject(robot C)\nfind_package({wanted})\n"
        )
        done = cmake(tmp_path, tmp_path / "build", f"-Dtaut_DIR={headers / 'share/cmake/taut'}")
        assert done.returncode != 0 and said in " ".join(done.stderr.split()), done.stderr


def test_pkg_config_knows_the_flags(tmp_path: Path) -> None:
    (tmp_path / "robot.c").write_text(textwrap.dedent(PROGRAM))
    command = f"PKG_CONFIG_PATH={folder('--pkgconfig-dir')} pkg-config --cflags --libs taut"
    flags = run("sh", "-c", command).split()
    run("gcc", "-std=c11", "-Wall", "-Werror", tmp_path / "robot.c", "-o", tmp_path / "robot", *flags)
    assert run(tmp_path / "robot") == "0\n"


def test_the_ros_2_node_builds_against_the_header_alone_and_is_followed(tmp_path: Path) -> None:
    mocks = [f"-D{name}_DIR={MOCK}" for name in ("ament_cmake", "rclcpp", "sensor_msgs")]
    source = tmp_path / "ros2_node"
    run("cp", "-r", ROOT / "examples/ros2_node", source)
    # Without the package: only a copy of the header, as its README says.
    run("mkdir", source / "include")
    run("cp", ROOT / "include/taut.h", source / "include")
    options = [*mocks, "-DCMAKE_DISABLE_FIND_PACKAGE_taut=ON", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"]
    done = cmake(source, tmp_path / "build", *options)
    assert done.returncode == 0, done.stderr
    run("cmake", "--build", tmp_path / "build")
    command = [Path(sys.executable).with_name("taut"), "record", "-q", "--ignore-loss", "-o", tmp_path / "run.mcap"]
    assert run(*command, "--", tmp_path / "build" / "node") == "99 1.5\n"
    [chain] = taut.open(tmp_path / "run.mcap").chains
    assert chain.points == ["limiter.received", "limiter.limited", "limiter.published"]
    assert (chain.messages, chain.outcomes["malformed"]) == (100, 1)
