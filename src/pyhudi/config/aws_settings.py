"""Region and credentials of requests to AWS."""

from __future__ import annotations

import os

from pyhudi.config import Options, options
from pyhudi.errors import ConfigError


def aws_credentials(opts: Options) -> dict[str, str]:
    """Return the credentials of the options ``hoodie.aws.*`` as the arguments of boto3; none if there are none, so that
    boto3 finds them, as in Apache Hudi.

    Raises:
        ConfigError: Options are incomplete, or request the assumption of a role.
    """
    if opts.get_typed(options.AWS_ROLE_ARN):
        raise ConfigError(
            f"{options.AWS_ROLE_ARN.key} is not supported; set role_arn in a profile of ~/.aws/config, and name the "
            "profile in the environment variable AWS_PROFILE"
        )
    access, secret = opts.get_typed(options.AWS_ACCESS_KEY), opts.get_typed(options.AWS_SECRET_KEY)
    if not access and not secret:
        return {}
    if not access or not secret:
        raise ConfigError(f"{options.AWS_ACCESS_KEY.key} and {options.AWS_SECRET_KEY.key} must be set together")
    token = opts.get_typed(options.AWS_SESSION_TOKEN)
    credentials = {"aws_access_key_id": access, "aws_secret_access_key": secret}
    return {**credentials, "aws_session_token": token} if token else credentials


def aws_region(region: str | None = None) -> str | None:
    """Return the region of requests: the given one, or the environment variable AWS_REGION, which Amazon's client for
    Java reads, and boto3 does not. None: that of boto3's configuration."""
    return region or os.environ.get("AWS_REGION") or None
