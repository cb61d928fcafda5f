"""Amplification: how many of the top k does an attacker own who plants m documents?

A radius and a certificate are about passages that were retrieved. What an attacker must do is plant documents, and have
them retrieved. Here texts are planted into a corpus, passages are retrieved from all of it, and the groups are counted
that hold a planted passage: rho(m). It is a measurement with these texts and this retriever, never a bound.

`spec` says what is measured, `corpora` what is planted into, `planting` what is planted, `searchers` how passages are
retrieved, `owners` counts, `measure` makes the rows and keeps them, `summary` puts them into lines.
"""
