"""Tests of the comparisons; `make test` runs them."""
