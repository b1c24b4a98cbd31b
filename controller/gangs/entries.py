"""Reads what is in the ledger, and leaves out what people have kept."""

import logging

from pydantic import ValidationError

from api.reservation import ReservationSpec, ReservationStatus
from api.streams import Custom
from controller.gangs.keeps.views import is_by_a_person
from controller.gangs.views import Reservation

_log = logging.getLogger(__name__)


def read_reservation(found: Custom) -> Reservation | None:
    """Read an entry of the ledger, or say in the log why it cannot be read."""
    if is_by_a_person(found):
        return None
    try:
        return Reservation(
            found.metadata,
            ReservationSpec.model_validate_json(bytes(found.spec)),
            ReservationStatus.model_validate_json(bytes(found.status)),
        )
    except ValidationError as error:
        meta = found.metadata
        _log.error("Reservation %s/%s cannot be read: %s", meta.namespace, meta.name, error)
        return None
