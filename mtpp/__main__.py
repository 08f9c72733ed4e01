"""``python -m mtpp``, and the command ``mtpp``: signals first, then the imports that take their time."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> "NoReturn":
    """Run the command line and exit with its code."""
    from mtpp.host.interrupts import install

    install()
    from mtpp.cli.main import main

    main()


if __name__ == "__main__":
    main()
