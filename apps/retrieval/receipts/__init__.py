"""The native receipt: its document, how it is written, and its replay."""
