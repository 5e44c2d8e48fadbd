"""How contexts are counted."""

from memory_platform.environment import environment

TOKENIZER = environment().memory_tokenizer
