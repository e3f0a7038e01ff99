"""A request of HTTP that is refused. Pure."""

from __future__ import annotations


class Refusal(Exception):
    """A request is refused.

    Attributes
    ----------
    status : int
        The HTTP status.
    code : int
        The error code of the interface.
    sentence : str
        What to do about it.
    is_missing : bool
        Whether something was not found, which another broker may just have written.
    """

    def __init__(self, status: int, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.code, self.sentence = status, code, sentence

    @property
    def is_missing(self) -> bool:
        return self.status == 404 and self.code != 404
