"""The command ``arml``, also as ``python -m arml``."""

import sys


def main() -> int:
    """Runs the command line. If a package is missing, says how to install it: the core alone does not need it."""
    try:
        from arml.lab.stopping import leave_on_ctrl_c

        with leave_on_ctrl_c():
            from arml.cli import main as run

        return run()
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("arml"):
            raise
        sys.stderr.write(f"arml: the command line needs the package {missing.name}: pip install 'arml[lab]'\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("arml: stopped before it began.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
