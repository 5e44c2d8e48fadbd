"""The labelling desk: a receipt's results one by one, judged by a person under its own name.

The law: reading the question and the passages is a reveal, asked for once with a reason and audited before the first
byte of text is shown; a desk ends with the sitting. Every judgment is a record of its own through feedback's service.
"""
