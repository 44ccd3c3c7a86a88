"""The lock that is an item of a table in DynamoDB."""
