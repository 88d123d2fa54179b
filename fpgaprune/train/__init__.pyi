from .finetuning import finetune as finetune
from .freezing import freeze as freeze
from .frozen import Frozen as Frozen
from .locked_optimizer import LockedOptimizer as LockedOptimizer
from .locking import lock as lock
from .locking import relock as relock
from .locking import unlock as unlock
