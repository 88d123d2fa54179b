from .layers import ROUNDED as ROUNDED
from .layers import Rounded as Rounded
from .layers import RoundedAverage as RoundedAverage
from .plain import is_rounded as is_rounded
from .plain import rounded_types as rounded_types
from .plain import unrounded as unrounded
from .plain import without_last_rounding as without_last_rounding
