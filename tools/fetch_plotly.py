"""Fetches the part of Plotly that the report page uses: ``python tools/fetch_plotly.py``.

The cartesian bundle has curves, points and heat maps, and a third of the size of the whole library. It is kept in the
repository, so that a report needs neither the network nor another package. To change the version, change both
constants: ``npm view plotly.js-cartesian-dist-min dist.integrity`` prints the checksum.
"""

import base64
import hashlib
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSION = "4.1.1"
SHA512 = "o8GrFeusncwBIxbBynRJpY4pkgVB6caM+JLpwrLYbbsO7dZ8FJ+SVN2Fr+L7kiG/Z6w4P5O0Jus/Qr5EefHVeg=="
PACKAGE = f"plotly.js-cartesian-dist-min@{VERSION}"
FOLDER = Path(__file__).parents[1] / "src/arml/report/output"
FILES = {"package/plotly-cartesian.min.js": "plotly-cartesian.min.js", "package/LICENSE": "plotly.LICENSE"}


def main() -> None:
    """Downloads the package with npm, checks it, and replaces the two files."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", PACKAGE], cwd=folder, check=True)
        archive = next(Path(folder).glob("*.tgz"))
        found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if found != SHA512:
            raise SystemExit(f"{PACKAGE} has the checksum {found}. Expected {SHA512}.")
        with tarfile.open(archive) as package:
            for inside, name in FILES.items():
                file = package.extractfile(inside)
                if file is None:
                    raise SystemExit(f"{PACKAGE} holds no file {inside}.")
                (FOLDER / name).write_bytes(file.read())


if __name__ == "__main__":
    main()
