"""An OpenAI-compatible endpoint that answers from documents: `robustrag serve`."""
