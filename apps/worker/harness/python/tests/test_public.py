# Contract 1: which objects of an app's module are its functions.
import contextlib
import io
import json
import os
import sys
import tempfile
from itertools import count

from inference_harness.app import App

numbers = count()


class Loaded:
    """An app of these files, loaded and set up."""

    def __init__(self, main, **files):
        self.folder = tempfile.mkdtemp()
        # Each app has its own module name, because a process normally has one app.
        entry = f"app{next(numbers)}_of_tests.py"
        for name, text in {**files, entry[:-3]: main}.items():
            with open(os.path.join(self.folder, f"{name}.py"), "w") as file:
                file.write(text)
        self.app = App(self.folder, entry)
        printed = io.StringIO()
        with contextlib.redirect_stderr(printed):
            self.app.load()
            for _ in self.app.set_up():
                pass
        sys.path.remove(self.folder)
        self.notes = printed.getvalue().splitlines()

    @property
    def names(self):
        return [one["name"] for one in self.app.describe()]

    def described(self, name):
        return next(one for one in self.app.describe() if one["name"] == name)

    def call(self, name, **arguments):
        params = json.dumps(arguments).encode()
        run = type("Run", (), {"id": "r", "function": name, "params": params})
        function, bound = self.app.bound(run)
        return function(**bound)


PREDICTOR = """
class Predictor:
    made = 0

    def __init__(self):
        Predictor.made += 1

    def setup(self):
        self.factor = 3

    def predict(self, x: int = 1):
        "Multiplies."
        return self.factor * x

    async def later(self):
        return 1

    @staticmethod
    def version():
        return "v1"

    @classmethod
    def instances(cls):
        return cls.made

    @property
    def size(self):
        raise RuntimeError("not read")

    def _private(self):
        pass

    def teardown(self):
        self.factor = 0
"""


def test_a_class_with_setup_is_instantiated_once_and_serves_its_methods():
    app = Loaded(PREDICTOR)
    assert app.names == ["predict", "later", "version", "instances"]
    assert app.call("predict", x=5) == 15
    assert app.call("instances") == 1
    assert app.call("version") == "v1"
    described = app.described("predict")
    assert described["doc"] == "Multiplies."
    assert [one["name"] for one in described["parameters"]] == ["x"]
    assert app.notes == []


def test_the_hooks_of_module_and_class_run_in_order():
    app = Loaded(
        "calls = []\n"
        "def setup(): calls.append('module')\n"
        "def teardown(): calls.append('module ends')\n"
        "class A:\n"
        "    def __init__(self): calls.append('new A')\n"
        "    def setup(self): calls.append('A')\n"
        "    def teardown(self): calls.append('A ends')\n"
        "    def order(self): return calls\n"
    )
    for hook in app.app.tear_down():
        hook()
    assert app.call("order") == ["module", "new A", "A", "A ends", "module ends"]
    assert app.names == ["order"]


def test_a_function_of_the_module_keeps_its_name_before_a_method():
    app = Loaded(
        "def predict(): return 'function'\n"
        "class A:\n"
        "    def setup(self): pass\n"
        "    def predict(self): return 'A'\n"
        "    def embed(self): return 'A'\n"
        "class B:\n"
        "    def setup(self): pass\n"
        "    def embed(self): return 'B'\n"
    )
    assert app.names == ["predict", "embed"]
    assert (app.call("predict"), app.call("embed")) == ("function", "A")
    assert app.notes == [
        "inference-proxy: the method A.predict is not served: a function has the same name",
        "inference-proxy: the method B.embed is not served: a method of A has the same name",
    ]


def test_a_class_that_the_file_instantiates_itself_is_left_to_the_file():
    app = Loaded(PREDICTOR + "_predictor = Predictor()\ndef run(): return Predictor.made\n")
    assert app.names == ["run"]
    assert app.call("run") == 1
    assert app.notes == [
        "inference-proxy: the class Predictor is not served: "
        "_predictor is already an instance of the class or belongs to an instance"
    ]


def test_classes_that_are_not_apps_are_not_served():
    app = Loaded(
        "import abc\n"
        "from base import Imported\n"
        "class NoSetup:\n    def predict(self): pass\n"
        "class _Private:\n    def setup(self): pass\n    def a(self): pass\n"
        "class Abstract(abc.ABC):\n"
        "    def setup(self): pass\n"
        "    @abc.abstractmethod\n    def b(self): pass\n"
        "class Needs:\n"
        "    def __init__(self, path): pass\n"
        "    def setup(self): pass\n"
        "    def c(self): pass\n",
        base="class Imported:\n    def setup(self): pass\n    def d(self): pass\n",
    )
    assert app.names == []
    assert app.notes == [
        "inference-proxy: the class Needs is not served: its constructor needs arguments"
    ]


def test_a_class_serves_the_methods_of_its_bases_in_the_app_only():
    app = Loaded(
        "from collections import UserDict\n"
        "from shared_base import Shared\n"
        "class Local(Shared):\n"
        "    def setup(self): pass\n"
        "    def local(self): return 'local'\n"
        "class Predictor(Local, UserDict):\n"
        "    def predict(self): return 'predict'\n",
        shared_base="class Shared:\n    def shared(self): return 'shared'\n",
    )
    assert app.names == ["predict", "local", "shared"]
    assert [app.call(name) for name in app.names] == ["predict", "local", "shared"]


def test_decorated_methods_are_served():
    app = Loaded(
        "import functools\n"
        "def _twice(method):\n"
        "    @functools.wraps(method)\n"
        "    def wrapper(*args, **more): return 2 * method(*args, **more)\n"
        "    return wrapper\n"
        "class Cached:\n"
        "    def setup(self): pass\n"
        "    @_twice\n"
        "    def double(self, x): return x\n"
        "    @functools.lru_cache\n"
        "    def cached(self): return 'cached'\n"
    )
    assert app.call("double", x=2) == 4
    assert app.call("cached") == "cached"


def test_callable_objects_partials_and_bound_methods_are_served():
    app = Loaded(
        "import functools\n"
        "from tools import Tool, imported_tool\n"
        "class _Scale:\n"
        "    'A scale.'\n"
        "    def __call__(self, x: int):\n"
        "        'Scales.'\n"
        "        return 10 * x\n"
        "    def method(self, x, y=1): return x + y\n"
        "def _power(base, exponent=2):\n"
        "    'Raises.'\n"
        "    return base ** exponent\n"
        "scale = _Scale()\n"
        "tool: Tool = Tool()\n"
        "cube = functools.partial(_power, exponent=3)\n"
        "add = _Scale().method\n"
        "double = lambda x: 2 * x\n"
        "number = 5\n"
        "Vector = list[float]\n",
        tools="class Tool:\n    def __call__(self): return 'tool'\nimported_tool = Tool()\n",
    )
    assert app.names == ["scale", "tool", "cube", "add", "double"]
    assert app.call("scale", x=2) == 20
    assert app.call("tool") == "tool"
    assert app.call("cube", base=2) == 8
    assert app.call("add", x=1) == 2
    assert app.described("scale")["doc"] == "Scales."
    assert app.described("cube")["doc"] == "Raises."
    assert [one["name"] for one in app.described("cube")["parameters"]] == ["base", "exponent"]


def test_objects_that_a_library_makes_callable_are_not_served():
    app = Loaded(
        "import types, typing\n"
        "class _Net(types.SimpleNamespace): pass\n"
        "import functools\n"
        "net = functools.singledispatch\n"
        "getter = __import__('operator').itemgetter(0)\n"
        "UserId = typing.NewType('UserId', int)\n"
    )
    assert app.names == []
