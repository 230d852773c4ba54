# Contract 1, "Parameters and types": schemas of functions, and the conversion of arguments.
