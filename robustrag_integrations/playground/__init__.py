"""The playground: a local page for poisoning passages and comparing answers with and without a defence.

`state` is what a page holds, `links` puts it into an address, `models` loads what is asked, `buttons` does what the
page asks for (with `answering`, `poisoning`, `what_it_takes`, `certificates`), `controls` tells the page what there is
to choose from, `parts` draws, and `app` serves all of it.
"""
