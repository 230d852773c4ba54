# Lets pytest find the harness's modules. tests/__main__.py does the same without pytest.
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
