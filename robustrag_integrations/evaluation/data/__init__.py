"""Evaluation data: files and their layouts, questions, data sets, and the demonstration world."""
