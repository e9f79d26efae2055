"""Actions on jobs and their undo: the place of their routes.

`router` is empty until `app.actions` exists; the factory includes it already.
"""

from fastapi import APIRouter

__all__ = ["router"]

router = APIRouter(tags=["actions"])
