"""Candidate generation: the channels, their restrictions, and the pool that scoring starts from."""

from .generate import Candidates, generate
from .pool import Attributes, Candidate

__all__ = ["Attributes", "Candidate", "Candidates", "generate"]
