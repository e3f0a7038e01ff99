"""UpdateFeatures: the cluster's level is raised, by compare-and-set, when every registered broker understands it.

A registration writes the document of the level, too (`membership`), so a broker that registers while it is decided is a
conflict, and everything is decided again with it.
"""

from pylog_spark.broker.answers import Json, error_of
from pylog_spark.broker.controller import CONFLICT, CONFLICTS_MAX, Controller, notice
from pylog_spark.cluster import documents
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.features import FEATURE, raised
from pylog_spark.cluster.store import RevisionConflict, Write


def update_features(controller: Controller, request: Json) -> Json:
    """UpdateFeatures: all that is asked, or nothing. The wire's JSON in, the wire's JSON out."""
    updates = request["feature_updates"]
    outcome = _outcome(controller, updates, bool(request.get("validate_only")))
    results = [{"feature": one["feature"], **error_of(outcome)} for one in updates]
    return {"throttle_time_ms": 0, **error_of(outcome), "results": results}


def _outcome(controller: Controller, updates: list[Json], validate_only: bool) -> Refusal | None:
    if len(updates) != 1 or updates[0]["feature"] != FEATURE:
        named = ", ".join(one["feature"] for one in updates) or "nothing"
        sentence = f"Only the level of {FEATURE} can be raised, one step at a time; {named} was asked for."
        return Refusal(ErrorCode.INVALID_REQUEST, sentence)
    if not controller.shared:
        return Refusal(ErrorCode.INVALID_REQUEST, "This broker is alone: only brokers of a cluster have a level.")
    for _ in range(CONFLICTS_MAX):
        try:
            return _raise(controller, updates[0]["max_version_level"], validate_only)
        except RevisionConflict:  # noqa: PERF203
            continue
    return CONFLICT


def _raise(controller: Controller, wanted: int, validate_only: bool) -> Refusal | None:
    store = controller.store
    stored = store.get(documents.FEATURES)
    assert stored is not None, "the first broker made it"
    now = documents.decode_number(documents.FEATURES, stored.data, "level")
    paths = store.paths(documents.REGISTRATIONS)
    registered = [
        documents.decode_registration(path, one.data, one.created)[0]
        for path, one in zip(paths, store.get_all(paths), strict=True)
        if one is not None
    ]
    refused = raised(now, wanted, registered)
    if refused is None and wanted != now and not validate_only:
        data = documents.encode_number("level", wanted)
        store.write_all([Write(documents.FEATURES, data, stored.revision)], None, notice([], brokers=True))
    return refused
