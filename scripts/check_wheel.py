"""Run with the wheel installed and nothing else: says whether users would get a whole package."""

import importlib.metadata
import importlib.util
import pathlib
import sys

import polite_transport

package = pathlib.Path(polite_transport.__file__).parent
if not package.is_relative_to(sys.prefix):
    sys.exit(f"{package} is not the installed wheel")
if not (package / "py.typed").is_file():
    sys.exit("py.typed is not in the wheel: type checkers would ignore our annotations")
if importlib.util.find_spec("tests") is not None:
    sys.exit("the wheel installs tests/ beside the package")
for name in polite_transport.__all__:
    getattr(polite_transport, name)
print(f"polite-transport {importlib.metadata.version('polite-transport')} imports from its wheel")
