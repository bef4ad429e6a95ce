"""Builds the files of a release, checks them, and runs the quickstart from them: `make release`.

Rule: nothing here uploads anything; `.github/workflows/release.yml` does, after this has passed.
docs/RELEASING.md explains the steps.
"""
