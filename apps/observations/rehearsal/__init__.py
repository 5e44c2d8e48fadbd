"""Rehearsals of the journal: the machine's half of B7, B8 and B9, shown in a database that is made for it.

The law: nothing here touches a database that a person has not marked as disposable. What is shown goes through the
services that run in earnest; only what time or a backup would bring about is put there by hand.
"""
