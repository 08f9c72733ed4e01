"""Build with kernels compiled ahead: all else is in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from logging import INFO, WARNING
from pathlib import Path
from shutil import rmtree

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

COMPILED = Path("mtpp", "solvers", "machine_code", "compiled")
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from mtpp.solvers.machine_code.shipping import main; main(sys.argv[1])"
)


class BuildWithKernels(build_py):
    """Copies the modules and puts the machine code of their kernels beside them, but for editable installs.

    Where numba is missing or compiling fails, the package comes without: it compiles on first use.
    """

    def run(self) -> None:
        """Copy and compile."""
        super().run()
        if self.editable_mode:
            return
        folder = str(Path(self.build_lib).absolute())
        rmtree(Path(folder, COMPILED), ignore_errors=True)
        self.announce("compiling kernels: about a minute", level=INFO)
        command = [sys.executable, "-B", "-c", PROGRAM, folder]  # bytecode would end up in the wheel
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        if done.returncode:
            rmtree(
                Path(folder, COMPILED), ignore_errors=True
            )  # a part of it would make the wheel one for this platform
            *_, last = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            self.announce(f"no kernels are compiled ahead: {last}", level=WARNING)


class TaggedWheel(bdist_wheel):
    """A wheel for one platform and one Python if it has machine code inside, for all otherwise."""

    def run(self) -> None:
        """Build and pack."""
        self.run_command("build")
        if any(Path(self.get_finalized_command("build").build_lib, COMPILED).glob("*")):
            self.root_is_pure = False
            self.distribution.has_ext_modules = lambda: True
        super().run()


setup(cmdclass={"build_py": BuildWithKernels, "bdist_wheel": TaggedWheel})
