from .flow_file import OwnFlow as OwnFlow
from .flow_file import with_keys as with_keys
from .narrower import widths_of as widths_of
from .narrower import with_widths as with_widths
from .shortages import advise as advise
from .shortages import advise_on_flow as advise_on_flow
from .sparser import global_average as global_average
