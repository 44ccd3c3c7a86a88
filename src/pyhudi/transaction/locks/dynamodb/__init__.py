"""The lock that is an item of a table in DynamoDB. Takes the options of the lock, and returns a provider with a lease
that a thread renews."""
