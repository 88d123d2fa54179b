from .edit import Edit as Edit
from .narrower import widths_of as widths_of
from .narrower import with_widths as with_widths
from .other_layouts import ladders as ladders
from .shortages import advise as advise
from .structure import other_io_type as other_io_type
