"""Papers as studies that can be repeated, one file per paper."""

from cranfield.studies._claims import Finding
from cranfield.studies._study import SYSTEMS, Exhibit
from cranfield.studies.bellogin2017 import BELLOGIN_2017
from cranfield.studies.canamares_castells2018 import CANAMARES_CASTELLS_2018
from cranfield.studies.canamares_castells2020 import CANAMARES_CASTELLS_2020
from cranfield.studies.replicating import STUDIES, replicate
from cranfield.studies.replication import Replication

__all__ = [
    "BELLOGIN_2017",
    "CANAMARES_CASTELLS_2018",
    "CANAMARES_CASTELLS_2020",
    "STUDIES",
    "SYSTEMS",
    "Exhibit",
    "Finding",
    "Replication",
    "replicate",
]
