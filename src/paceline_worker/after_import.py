"""Do something as soon as a module has been imported, whoever imports it and whenever."""

import importlib.util
import sys


def after_import(name, call):
    """Call once the module of that name is there; never, if nobody imports it."""
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Watcher(name, call))


class _Watcher(object):
    """A finder that finds nothing itself: it asks the others, and has the module's loader call when it is done."""

    def __init__(self, name, call):
        self._name = name
        self._call = call

    def find_spec(self, name, _path=None, _target=None):
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_call(module):
                load(module)
                self._call()

            spec.loader.exec_module = load_and_call
        return spec
