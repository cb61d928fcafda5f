"""Replies of real models to RealtimeQA's questions, one prompt per passage, and what is made of them."""
