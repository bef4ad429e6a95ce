"""The folder of captured rows: segments and a manifest, whose replacement is the commit point."""
