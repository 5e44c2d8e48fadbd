"""Erasure of everything that a principal owns: plan, fence, file, deletion in batches, recount, certificate.

The law of this package. The *fence* comes first: one committed transaction makes the certificate and shuts the
principal out. Then a line goes to the erasure file, outside the database, so that a restored backup can be told
what must not come back. Then rows go, table by table in committed batches, each checking holds under lock; last
the principal itself, whose row no write in flight can outlive, because every owned row points to it. A recount,
as the owner of the tables and through the principal's own session, decides: rows left, a missing line or a hold
make the certificate *incomplete*, an alarm, and are tried again. It says *complete* only when nothing is left.

What is erased follows from the models: `erasure = "delete"` (batched here), `"cascade"` (goes with what it hangs
on, counted here), or `"keep: reason"`.
"""
