"""Switching collection on with evidence and four eyes, and off with proof.

The law: nothing is waived. An item that is missing, failed or stale keeps the mode off; what was approved is exactly
what is enabled; switching off needs one person, and counts as done only when every process is seen to follow.
"""
