"""The stored policy of kind `gate` that rules a workspace."""
