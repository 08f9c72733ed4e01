"""Build with kernels compiled ahead: all else is in pyproject.toml."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from shutil import rmtree

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

COMPILED = Path("mtpp", "solvers", "compiled")
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from mtpp.api.shipping import main; main()"
ANY_PROCESSOR = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_DISABLE_INTEL_SVML": "1",  # a library that is not everywhere
}


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
        compiled = Path(folder, COMPILED)
        rmtree(compiled, ignore_errors=True)
        self.say("compiling inner loops: about a minute on two cores, seconds if an earlier build did it")
        settings = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        if "NUMBA_CACHE_DIR" in os.environ:
            settings["NUMBA_CACHE_DIR"] = os.path.abspath(os.environ["NUMBA_CACHE_DIR"])
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, folder],
            env=settings | ANY_PROCESSOR | {"PYTHONDONTWRITEBYTECODE": "1"},  # it would end up in the wheel
            capture_output=True,
            text=True,
            cwd=folder,
        )
        *_, last = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        if done.returncode:
            rmtree(compiled, ignore_errors=True)  # a part of it would make the wheel one for this platform
            self.say(f"no inner loops are compiled ahead: {last}")
        else:
            self.say(f"{last}, in {time.monotonic() - began:.0f} s")

    def say(self, message: str) -> None:
        """Tell the terminal, for pip shows the log of a build that succeeds to nobody; the log where there is none."""
        try:
            with open("/dev/tty", "w", encoding="utf-8") as terminal:
                terminal.write(f"mtpp: {message}\n")
        except OSError:
            print(f"mtpp: {message}", flush=True)


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
