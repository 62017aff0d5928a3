"""The command ``arml``, also as ``python -m arml``."""

import sys


def main() -> int:
    """Runs the command line. If a package is missing, says how to install it: the core alone does not need it."""
    try:
        from arml.cli import main as run

        return run()
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("arml"):
            raise
        sys.stderr.write(f"arml: the command line needs the package {missing.name}: pip install 'arml[lab]'\n")
        return 2
    except (KeyboardInterrupt, RuntimeError) as error:  # importing takes seconds
        # Python 3.11 wraps an interrupt while a class is made.
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        sys.stderr.write("arml: stopped before it began.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
