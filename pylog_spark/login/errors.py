"""Why there is no token."""


class TokenError(Exception):
    """There is no token for a login. The sentence says why, without secrets.

    Parameters
    ----------
    sentence : str
        What is wrong and what to do.
    retriable : bool
        Whether there may be one later.
    """

    def __init__(self, sentence: str, *, retriable: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.retriable = retriable
