__version__ = "3.15.1+layout.1"
