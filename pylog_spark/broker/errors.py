"""Why a broker does not start, or stops. `args[0]` of each is one sentence that says what to do."""


class BrokerError(Exception):
    """The broker cannot start, or failed."""


class MembershipError(Exception):
    """This broker cannot be a member of the cluster."""
