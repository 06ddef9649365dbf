"""Prices of European options: by formula, by random paths, and their derivatives."""

from vanilla_pricing import formulas, greeks, paths, surfaces
from vanilla_pricing.formulas import option_price

__all__ = ["formulas", "greeks", "option_price", "paths", "surfaces"]
