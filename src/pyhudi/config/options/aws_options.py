"""Credentials for requests to AWS, with keys of Apache Hudi."""

from __future__ import annotations

from pyhudi.config.option import optional_text

AWS_ACCESS_KEY = optional_text(
    "hoodie.aws.access.key",
    "Access key for locks in DynamoDB and for AWS Glue. Default: the credentials that boto3 finds (environment, "
    "profile, role).",
)
AWS_SECRET_KEY = optional_text("hoodie.aws.secret.key", "Secret key of `hoodie.aws.access.key`.")
AWS_SESSION_TOKEN = optional_text("hoodie.aws.session.token", "Session token of `hoodie.aws.access.key`.")
AWS_ROLE_ARN = optional_text("hoodie.aws.role.arn", "Refused: set `role_arn` in a profile of `~/.aws/config`.")
