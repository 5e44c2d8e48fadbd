"""JWTs of issuers that a workspace trusts."""
