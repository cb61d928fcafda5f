"""The playground: a local page for poisoning passages and comparing answers with and without a defence."""
