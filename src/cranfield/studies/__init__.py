"""Papers as studies that can be repeated, one file per paper."""

from cranfield.studies._claims import Finding
from cranfield.studies._study import SYSTEMS, Exhibit
from cranfield.studies.replicating import STUDIES, replicate
from cranfield.studies.replication import Replication

__all__ = ["STUDIES", "SYSTEMS", "Exhibit", "Finding", "Replication", "replicate"]
