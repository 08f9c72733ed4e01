"""``python -m mtpp``."""

from mtpp.cli.main import main

if __name__ == "__main__":
    main()
