"""Papers as studies that can be repeated, one folder per paper."""

from cranfield.studies.bellogin2017 import BELLOGIN_2017
from cranfield.studies.canamares_castells2018 import CANAMARES_CASTELLS_2018
from cranfield.studies.canamares_castells2020 import CANAMARES_CASTELLS_2020
from cranfield.studies.frame.exhibits import Exhibit
from cranfield.studies.frame.replication import Replication
from cranfield.studies.replicating import STUDIES, replicate

__all__ = [
    "BELLOGIN_2017",
    "CANAMARES_CASTELLS_2018",
    "CANAMARES_CASTELLS_2020",
    "STUDIES",
    "Exhibit",
    "Replication",
    "replicate",
]
