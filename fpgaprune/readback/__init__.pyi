from .answers import BitstreamCheck as BitstreamCheck
from .answers import Results as Results
from .answers import check_bitstream as check_bitstream
from .answers import check_chip as check_chip
from .answers import netlist_of as netlist_of
from .answers import read_chip as read_chip
from .chip import Chip as Chip
