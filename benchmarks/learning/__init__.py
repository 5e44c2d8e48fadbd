"""What learning costs: the fit, evaluations of stored receipts, holdouts, and searches beside an evaluation."""
