# Contract 1, "Body": the files of a form.
import io
import json
import os
from typing import BinaryIO, Optional

from inference_harness.failures import Refused
from inference_harness.functions import Function
from inference_harness.logs import current_run
from inference_harness.typed.describe import Descriptions
from inference_harness.uploads import MEMORY_LIMIT
from parts import raised, run
from test_produce import Served


def body(parameters, *files):
    """Returns parameters with files: name, content and options of each file."""
    listed = [
        {
            "parameter": name,
            "name": "a.bin",
            "content_type": "image/png",
            "bytes": len(data),
            **more,
        }
        for name, data, more in files
    ]
    head = json.dumps({"parameters": parameters, "files": listed}).encode()
    return b"\0" + head + b"\n" + b"".join(data for _, data, _ in files)


def bound(function, params, one=None):
    """Returns the arguments of a call in a run."""
    described = Function("f", function)
    described.describe_types(Descriptions(True))
    token = current_run.set(one or run())
    try:
        call, arguments = described.bound(params, "the-run")
    finally:
        current_run.reset(token)
    return call(**arguments)


def both(photo: bytes, n: int = 0):
    return photo, n


def opened(photo: BinaryIO):
    return photo


def test_a_file_is_the_bytes_of_its_parameter():
    data = b"\x00\xff\n{}"
    photo, n = bound(both, body({"n": 2}, ("photo", data, {})))
    assert (photo, n, type(photo)) == (data, 2, bytes)


def test_several_files_are_a_list_and_an_optional_file_may_be_missing():
    def several(photos: list[bytes], one: Optional[bytes] = None):
        return photos, one

    files = [
        ("photos", b"a\n", {"list": True}),
        ("photos", b"b", {"list": True}),
        ("one", b"c", {}),
    ]
    assert bound(several, body({}, *files)) == ([b"a\n", b"b"], b"c")
    assert bound(several, body({}, *files[:2])) == ([b"a\n", b"b"], None)


def test_a_file_object_has_name_and_content_type():
    one = run()
    file = bound(opened, body({}, ("photo", b"abc", {})), one)
    assert (file.read(), file.name, file.content_type) == (b"abc", "a.bin", "image/png")
    assert one.files == [file]


def test_text_in_place_of_a_file_is_a_file_too():
    file = bound(opened, '{"photo": "é"}'.encode())
    assert (file.read(), file.name, file.content_type) == ("é".encode(), "", "text/plain")
    assert raised(Refused, bound, opened, b'{"photo": 1}').details[0]["type"] == "string_type"


def test_a_large_file_is_on_disk_without_an_entry_in_a_folder():
    data = os.urandom(MEMORY_LIMIT + 1)
    file = bound(opened, body({}, ("photo", data, {})))
    path = os.readlink(f"/proc/self/fd/{file.fileno()}")
    assert path.endswith("(deleted)") and not os.path.exists(path)
    assert (file.name, file.content_type) == ("a.bin", "image/png")
    assert file.read(10) == data[:10]
    assert file.seek(-5, io.SEEK_END) == MEMORY_LIMIT - 4
    assert file.read() == data[-5:]
    file.close()


def test_the_end_of_a_run_closes_its_files():
    kept = []

    def function():
        return kept[0].read().decode()

    served = Served.__new__(Served)
    file = bound(opened, body({}, ("photo", b"x" * (MEMORY_LIMIT + 1), {})))
    kept.append(file)
    Served.__init__(served, lambda: served.run.files.append(file) or function())
    assert served.end()["t"] == "done"
    assert file.closed
