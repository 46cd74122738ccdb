"""Databases that must be refused or found out, made by script for tests and for people.

Not installed with the product.
"""
