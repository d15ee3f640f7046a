"""Whole-run scenarios against closed forms: each case returns rows of error, order, bound and verdict."""
