"""Reads of the journal by its owner, in a principal session."""

from .observations import enrolment_shown, observation_detail, observation_page

__all__ = ["enrolment_shown", "observation_detail", "observation_page"]
