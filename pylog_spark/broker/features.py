"""UpdateFeatures: the cluster's level is raised, by compare-and-set, when every registered broker understands it.

The native server answers for features whose level never changes.

A registration writes the document of the level, too (`membership`). So when a broker registers
meanwhile, the write conflicts, and the decision is made again with that broker.
"""

from pylog_spark.broker import messages
from pylog_spark.broker.answers import error_of
from pylog_spark.broker.registry import CONFLICT, CONFLICTS_MAX, TopicRegistry, change_notification
from pylog_spark.cluster import documents
from pylog_spark.cluster.errors import ErrorCode, Refusal
from pylog_spark.cluster.features import FEATURE, UpgradeType, raised
from pylog_spark.cluster.store import RevisionConflict, Write


def update_features(
    registry: TopicRegistry, request: messages.UpdateFeaturesRequest
) -> messages.UpdateFeaturesResponse:
    """UpdateFeatures: make all changes of the request, or none."""
    updates = request["feature_updates"]
    outcome = _outcome(registry, updates, bool(request.get("validate_only")))
    # As in Kafka: an error is one for the whole request, and only without an error each feature has an entry.
    results: list[messages.UpdatableFeatureResult] = (
        [] if outcome else [{"feature": update["feature"], **error_of(None)} for update in updates]
    )
    return {"throttle_time_ms": 0, **error_of(outcome), "results": results}


def _outcome(registry: TopicRegistry, updates: list[messages.FeatureUpdate], validate_only: bool) -> Refusal | None:
    unknown = next((update["feature"] for update in updates if update["feature"] != FEATURE), None)
    if unknown is not None:
        sentence = f"There is no feature {unknown!r}: pylog cluster features shows the features there are."
        return Refusal(ErrorCode.INVALID_UPDATE_VERSION, sentence)
    if not updates:
        return None
    if not registry.shared:
        sentence = "This broker is alone: only a cluster has a level."
        return Refusal(ErrorCode.INVALID_UPDATE_VERSION, sentence)
    for _ in range(CONFLICTS_MAX):
        try:
            return _raise(registry, updates[-1], validate_only)
        except RevisionConflict:  # noqa: PERF203
            continue
    return CONFLICT


def _raise(registry: TopicRegistry, update: messages.FeatureUpdate, validate_only: bool) -> Refusal | None:
    store, wanted = registry.store, update["max_version_level"]
    # The older versions of the request have a flag instead of the type.
    asked = UpgradeType.SAFE_DOWNGRADE if update.get("allow_downgrade") else update.get("upgrade_type", 1)
    stored = store.get(documents.FEATURES)
    assert stored is not None, "the first broker made it"
    now = documents.decode_number(documents.FEATURES, stored.data, "level")
    paths = store.paths(documents.REGISTRATIONS)
    registered = [
        documents.decode_registration(path, registration.data, registration.created)[0]
        for path, registration in zip(paths, store.get_all(paths), strict=True)
        if registration is not None
    ]
    refused = raised(now, wanted, registered, asked)
    if refused is None and wanted != now and not validate_only:
        data = documents.encode_number("level", wanted)
        store.write_all([Write(documents.FEATURES, data, stored.revision)], None, change_notification([], brokers=True))
    return refused
