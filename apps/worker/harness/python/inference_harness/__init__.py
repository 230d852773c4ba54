# PROTOCOL.md: the modules of the harness. The package keeps their names away from the imports of
# an app.
