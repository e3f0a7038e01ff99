"""The requests of a login at a listener where nobody logs in."""

from tests.oracle.compare import case
from tests.oracle.script import Script


@case
def test_a_handshake_without_sasl_is_out_of_place(s: Script) -> None:
    for version in (0, 1):
        s.call("SaslHandshake", version, mechanism="SCRAM-SHA-512")
        s.says("ILLEGAL_SASL_STATE")


@case
def test_a_message_of_a_login_without_sasl_is_out_of_place_and_the_connection_stays(s: Script) -> None:
    for version in (0, 1, 2):
        s.call("SaslAuthenticate", version, auth_bytes="00616c69636500")
        s.says("ILLEGAL_SASL_STATE")
