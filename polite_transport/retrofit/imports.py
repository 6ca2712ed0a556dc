"""Doing something to a module when it is imported, or now if it is already.

A program that never imports a client must not have to pay for it, nor even have it.
"""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Act = Callable[[ModuleType], None]


class _Finder(MetaPathFinder):
    """Lets the other finders find a module, and acts once it is loaded."""

    def __init__(self) -> None:
        self.acts: dict[str, list[Act]] = {}
        self._finding: set[str] = set()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - as every finder is called
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname not in self.acts or fullname in self._finding:
            return None
        self._finding.add(fullname)
        try:
            spec = find_spec(fullname)
        finally:
            self._finding.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _ActingLoader(spec.loader, self)
        return spec


class _ActingLoader(Loader):
    def __init__(self, loader: Loader, finder: _Finder) -> None:
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # for those who look at a spec and import nothing

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # What is asked of the module from here on is the loader's own, not ours.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for act in self._finder.acts.pop(module.__name__, ()):
            act(module)


_finder = _Finder()


def when_imported(name: str, act: Act) -> None:
    """Call ``act`` with the module of that name: now, or as soon as it is imported."""
    module = sys.modules.get(name)
    if module is not None:
        act(module)
        return
    _finder.acts.setdefault(name, []).append(act)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def no_longer(act: Act) -> None:
    """Forget an act that is still waiting for its module."""
    for acts in _finder.acts.values():
        if act in acts:
            acts.remove(act)
