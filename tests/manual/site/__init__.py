"""The documentation site: pages of the repository, made ready for the site generator.

    pages       which file is which page; links between files become links between pages
    markdown    from GitHub's Markdown to that of Python-Markdown, which the generator uses
    __main__    writes the pages and runs the generator: `make site`
    faithful    compares the built pages with what GitHub shows
    browser     every page in a real browser: nothing wider than the screen, no error

Rule: pages keep the link style that GitHub shows; everything else is changed here, while the site is
built. Only `faithful` and `browser` import more than the standard library.
"""
