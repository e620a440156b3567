"""`python -m taut`: where the wheel put what the builds of other programs need."""

import argparse
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path, PurePath

# Option, the file that is looked for, what its folder is.
FOLDERS = [
    ("--cmake-dir", "taut-config.cmake", "folder for CMake: cmake -Dtaut_DIR=$(python -m taut --cmake-dir)"),
    ("--include-dir", "taut.h", "folder of taut.h"),
    ("--pkgconfig-dir", "taut.pc", "folder for pkg-config: PKG_CONFIG_PATH=$(python -m taut --pkgconfig-dir)"),
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m taut", description="Say where taut's files for C and C++ are.")
    group = parser.add_mutually_exclusive_group(required=True)
    for option, file, says in FOLDERS:
        group.add_argument(option, action="store_const", const=file, dest="file", help=says)
    name = parser.parse_args().file
    folder = folder_of(name)
    if folder is None:
        parser.error(f"{name} is not among the files of an installed wheel; install it: pip install taut-*.whl")
    print(folder)


def folder_of(name: str) -> Path | None:
    """The folder of a file that the wheel installed, told by the end of its path."""
    wanted = PurePath(name).parts
    try:
        installed = files("taut") or []
    except PackageNotFoundError:
        return None
    for file in installed:
        path = Path(str(file.locate())).resolve()
        if file.parts[-len(wanted) :] == wanted and path.exists():
            return path.parent
    return None


if __name__ == "__main__":
    main()
