from .shortages import advise as advise
