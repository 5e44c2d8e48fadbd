"""Routes of history, outcomes, judgments and citations."""
