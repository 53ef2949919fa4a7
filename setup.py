"""Package metadata is in setup.cfg; this file lets older tools install the package too."""

from setuptools import setup

setup()
