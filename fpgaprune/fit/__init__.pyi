from .answer import Fit as Fit
from .answer import FitPoint as FitPoint
from .fitting import fit as fit
from .fitting import fit_flow as fit_flow
from .limits import Limits as Limits
from .page import facts as facts
from .page import front_rows as front_rows
from .page import headline as headline
